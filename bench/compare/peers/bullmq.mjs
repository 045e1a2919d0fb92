// BullMQ on Redis. Tuned: concurrency as its page on parallelism advises, one round trip for what is sent together,
// finished jobs removed.
import { Queue, Worker } from 'bullmq';
import Redis from 'ioredis';

const kQueue = 'bench';
const kConcurrency = 200;

export default ({ redis, tuned }) => {
    const server = { host: '127.0.0.1', port: redis, maxRetriesPerRequest: null };
    const connection = tuned ? { ...server, enableAutoPipelining: true } : server;
    const ask = async (question) => {
        const client = new Redis(server);
        try {
            return await question(client);
        } finally {
            client.disconnect();
        }
    };
    return {
        bulk: 1000,
        tuning: { concurrency: kConcurrency, enableAutoPipelining: true, removeOnComplete: true },
        install: () => ask((client) => client.flushall()),
        async producer() {
            const queue = new Queue(kQueue, {
                connection, ...(tuned ? { defaultJobOptions: { removeOnComplete: true } } : {}),
            });
            await queue.waitUntilReady();
            return {
                one: (task) => queue.add('noop', task),
                many: (tasks) => queue.addBulk(tasks.map((data) => ({ name: 'noop', data }))),
                close: () => queue.close(),
            };
        },
        async worker(handle) {
            const worker = new Worker(kQueue, async (job) => handle(job.data), {
                connection, ...(tuned ? { concurrency: kConcurrency } : {}),
            });
            worker.on('error', () => {});
            await worker.waitUntilReady();
        },
        async unfinished() {
            const queue = new Queue(kQueue, { connection: server });
            const counts = await queue.getJobCounts('waiting', 'active', 'delayed', 'prioritized', 'paused');
            await queue.close();
            return Object.values(counts).reduce((sum, count) => sum + count, 0);
        },
        // Redis has no log of statements, but it counts them.
        commands: () => ask(async (client) =>
            Number(/total_commands_processed:(\d+)/.exec(await client.info('stats'))[1])),
    };
};
