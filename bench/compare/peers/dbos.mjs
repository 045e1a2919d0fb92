// DBOS. Tuned: a bound on what one process runs, a short poll, a larger pool. Finished workflows stay with their state.
import { DBOS, DBOSClient } from '@dbos-inc/dbos-sdk';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { countOf, query, silent } from './common.mjs';

const kQueue = 'bench';
const kTuned = { workerConcurrency: 100, minPollingIntervalMs: 10 };
const kPool = 20;

let handler = () => {};
DBOS.registerWorkflow(async (task) => handler(task), { name: 'noop' });

export default ({ url, tuned }) => {
    const launch = async (more) => {
        DBOS.setConfig({
            name: 'bench', systemDatabaseUrl: url, applicationVersion: '1', logger: silent,
            ...(tuned ? { systemDatabasePoolSize: kPool } : {}), ...more,
        });
        await DBOS.launch();
    };
    return {
        bulk: 1000,
        tuning: { ...kTuned, systemDatabasePoolSize: kPool },
        async install() {
            await launch({ executorID: 'installer', listenQueues: ['none'] });
            await DBOS.registerQueue(kQueue, { ...(tuned ? kTuned : {}), onConflict: 'always_update' });
            await DBOS.shutdown();
        },
        async producer() {
            const client = await DBOSClient.create({
                systemDatabaseUrl: url, systemDatabasePoolSize: 16, logger: silent, applicationName: 'bench',
            });
            const pool = new pg.Pool({ connectionString: url, max: 2 });
            const target = { workflowName: 'noop', queueName: kQueue };
            return {
                one: (task) => client.enqueue(target, task),
                // There is no call for many; sharing a transaction is what the client offers.
                async many(tasks) {
                    const connection = await pool.connect();
                    try {
                        await connection.query('BEGIN');
                        for (const task of tasks) await client.enqueueInTransaction(connection, target, task);
                        await connection.query('COMMIT');
                    } finally {
                        connection.release();
                    }
                },
                async close() {
                    await client.destroy();
                    await pool.end();
                },
            };
        },
        async worker(handle) {
            handler = handle;
            await launch({ executorID: randomUUID() });
        },
        unfinished: () => countOf(
            url, "SELECT count(*) FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING', 'DELAYED')"),
        // One thousand a second are too few to fill a large backlog with: rows are copied under new ids.
        async multiply(times) {
            const columns = (await query(url, `SELECT quote_ident(column_name) AS name FROM information_schema.columns
                WHERE table_schema = 'dbos' AND table_name = 'workflow_status' AND is_generated = 'NEVER'
                    AND is_identity = 'NO'`)).map((row) => row.name);
            const values = columns.map((name) => (name === 'workflow_uuid' ? 'gen_random_uuid()::text' : name));
            await query(url, `INSERT INTO dbos.workflow_status(${columns}) SELECT ${values}
                FROM dbos.workflow_status CROSS JOIN generate_series(2, ${times})`);
        },
    };
};
