// pg-boss. Tuned: batches fetched and completed at once, the next one without waiting when a batch was full, woken by
// NOTIFY. The handler gets an array; finished jobs stay with their state.
import { PgBoss } from 'pg-boss';
import { countOf } from './common.mjs';

const kQueue = 'bench';
const kTuned = { batchSize: 2000, localConcurrency: 2, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 };

export default ({ url, tuned }) => {
    const boss = (more) => {
        const made = new PgBoss({ connectionString: url, ...(tuned ? { useListenNotify: true } : {}), ...more });
        made.on('error', () => {});
        return made;
    };
    const quiet = { supervise: false, schedule: false };
    return {
        bulk: 5000,
        tuning: { ...kTuned, useListenNotify: true, 'queue.notify': true },
        async install() {
            const installer = boss(quiet);
            await installer.start();
            await installer.createQueue(kQueue, tuned ? { notify: true } : {});
            await installer.stop({ graceful: false });
        },
        async producer() {
            const sender = boss({ ...quiet, max: 16 });
            await sender.start();
            return {
                one: (task) => sender.send(kQueue, task),
                many: (tasks) => sender.insert(kQueue, tasks.map((data) => ({ data }))),
                close: () => sender.stop({ graceful: false }),
            };
        },
        async worker(handle) {
            const worker = boss({});
            await worker.start();
            await worker.work(kQueue, tuned ? kTuned : {}, async (jobs) => {
                for (const job of jobs) handle(job.data);
            });
        },
        unfinished: () => countOf(
            url, `SELECT count(*) FROM pgboss.job WHERE name = '${kQueue}' AND state < 'completed'`),
    };
};
