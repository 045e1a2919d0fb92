// BullMQ on its PostgreSQL backend. Tuned: ten at once over as many connections, finished jobs removed.
import { createPostgresBackend, withBackend } from 'bullmq';
import { countOf } from './common.mjs';

const { Queue, Worker } = withBackend(createPostgresBackend);
const kQueue = 'bench';
const kAtOnce = 10;

export default ({ url, tuned }) => ({
    bulk: 1000,
    tuning: { concurrency: kAtOnce, max: kAtOnce, removeOnComplete: true },
    async install() {
        const queue = new Queue(kQueue, { connection: { connectionString: url, migrate: true } });
        await queue.waitUntilReady();
        await queue.close();
    },
    async producer() {
        const queue = new Queue(kQueue, {
            connection: { connectionString: url, max: 16 },
            ...(tuned ? { defaultJobOptions: { removeOnComplete: true } } : {}),
        });
        queue.on('error', () => {});
        await queue.waitUntilReady();
        return {
            one: (task) => queue.add('noop', task),
            many: (tasks) => queue.addBulk(tasks.map((data) => ({ name: 'noop', data }))),
            close: () => queue.close(),
        };
    },
    async worker(handle) {
        const worker = new Worker(kQueue, async (job) => handle(job.data), {
            connection: { connectionString: url, ...(tuned ? { max: kAtOnce } : {}) },
            ...(tuned ? { concurrency: kAtOnce } : {}),
        });
        worker.on('error', () => {});
        await worker.waitUntilReady();
    },
    unfinished: () => countOf(
        url, "SELECT count(*) FROM bullmq.job WHERE state IN ('waiting', 'active', 'delayed')"),
});
