// Graphile Worker. Tuned: the preset of its performance page, with a local queue of 2000 instead of 500, which drains
// faster. Finished jobs are deleted.
import { Logger, makeWorkerUtils, run } from 'graphile-worker';
import pg from 'pg';
import { countOf } from './common.mjs';

const logger = new Logger(() => () => {});
const kTuned = {
    concurrentJobs: 24,
    maxPoolSize: 25,
    localQueue: { size: 2000 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
};

export default ({ url, tuned }) => ({
    bulk: 5000,
    tuning: kTuned,
    async install() {
        const utils = await makeWorkerUtils({ connectionString: url, logger });
        await utils.migrate();
        await utils.release();
    },
    async producer() {
        const pool = new pg.Pool({ connectionString: url, max: 16 });
        pool.on('error', () => {});
        pool.on('connect', (client) => client.on('error', () => {}));
        const utils = await makeWorkerUtils({ pgPool: pool, logger });
        return {
            one: (task) => utils.addJob('noop', task),
            many: (tasks) => utils.addJobs(
                tasks.map((task) => ({ identifier: 'noop', payload: task }))),
            async close() {
                await utils.release();
                await pool.end();
            },
        };
    },
    async worker(handle) {
        const taskList = { noop: async (task) => handle(task) };
        const common = { taskList, logger, noHandleSignals: true };
        if (!tuned) return run({ ...common, connectionString: url });
        return run({ ...common, preset: { worker: { connectionString: url, ...kTuned } } });
    },
    unfinished: () => countOf(url, 'SELECT count(*) FROM graphile_worker._private_jobs'),
});
