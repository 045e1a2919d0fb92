// What every peer shares: where the servers are, one clock for all processes, the payload.
import pg from 'pg';

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// CLOCK_MONOTONIC in milliseconds: the same in every process of this machine.
export const clock = () => Number(process.hrtime.bigint()) / 1e6;

// About 100 bytes of JSON. `at` is the clock of whoever wants to know how long it took.
export const payload = (n, at = 0) => ({
    n, at, user: 'customer-000123', action: 'send_invoice', language: 'en', filler: '----------',
});

export async function query(url, text) {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
        return (await client.query(text)).rows;
    } finally {
        await client.end();
    }
}

export const countOf = async (url, text) => Number((await query(url, text))[0].count);

// Several peers log at will; what they say is of no use in a figure.
export const silent = Object.fromEntries(
    ['trace', 'debug', 'log', 'info', 'warn', 'error'].map((level) => [level, () => {}]));
