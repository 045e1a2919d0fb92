// One measurement of one peer: node measure.mjs '{"peer": …, "tuned": …, "url": …, "what": …, …}'. The last line that
// begins with "result " carries the figures as JSON. See ../README.md for what each is.
import pg from 'pg';
import { clock, payload, sleep } from './common.mjs';
import { Crew } from './crew.mjs';

const spec = JSON.parse(process.argv[2]);
const { default: makePeer } = await import(`./${spec.peer}.mjs`);
const peer = makePeer(spec);

const batch = (from, count) => Array.from({ length: count }, (_, i) => payload(from + i));

function percentiles(samples) {
    const sorted = Float64Array.from(samples).sort();
    const at = (part) => (sorted.length === 0 ? null : sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]);
    return { p50_ms: at(0.5), p95_ms: at(0.95), p99_ms: at(0.99), max_ms: at(1) };
}

async function withCrew(body) {
    const crew = await Crew.load(spec, spec.processes ?? 1);
    try {
        return await body(crew);
    } finally {
        crew.stop();
    }
}

async function withProducer(body) {
    const producer = await peer.producer();
    try {
        return await body(producer);
    } finally {
        // Closing waits for what is under way, which may be much when a peer is behind.
        await Promise.race([producer.close(), sleep(5000)]);
    }
}

// ---- preparing ---------------------------------------------------------------------------------

async function fill() {
    await peer.install();
    if (!spec.tasks) return {};
    const enqueued = peer.multiply ? Math.min(spec.tasks, 10_000) : spec.tasks;
    await withProducer(async (producer) => {
        let next = 0;
        const lane = async () => {
            while (next < enqueued) {
                const from = next;
                const count = Math.min(peer.bulk, enqueued - from);
                next += count;
                await producer.many(batch(from, count));
            }
        };
        await Promise.all([lane(), lane()]);
    });
    if (spec.tasks > enqueued) await peer.multiply(Math.floor(spec.tasks / enqueued));
    return { unfinished: await peer.unfinished() };
}

// ---- measuring ---------------------------------------------------------------------------------

// Until the store holds nothing unfinished, or `target` tasks are done, or the time is over.
const drain = () => withCrew(async (crew) => {
    const before = await peer.unfinished();
    const target = spec.target ?? before;
    const begun = clock();
    const over = () => clock() - begun > spec.seconds * 1000;
    await crew.go({ wait: false });
    let left = before;
    let asked = begun;
    for (;;) {
        while (crew.handled < target && !over()) await sleep(5);
        asked = clock();
        left = await peer.unfinished();
        if (before - left >= target || over()) break;
        await sleep(5);
    }
    const seconds = (asked - (crew.first || begun)) / 1000;
    return { done: before - left, of: target, seconds, tasks_per_s: (before - left) / seconds };
});

const submitMany = () => withProducer(async (producer) => {
    await producer.many(batch(0, 1));
    const before = await peer.unfinished();
    const begun = clock();
    let sent = 0;
    while (sent < spec.tasks && clock() - begun < spec.seconds * 1000) {
        const count = Math.min(peer.bulk, spec.tasks - sent);
        await producer.many(batch(sent, count));
        sent += count;
    }
    const seconds = (clock() - begun) / 1000;
    const stored = (await peer.unfinished()) - before;
    return { stored, seconds, tasks_per_s: stored / seconds };
});

const submitEach = () => withProducer(async (producer) => {
    await producer.one(payload(0));
    const before = await peer.unfinished();
    const begun = clock();
    let next = 0;
    const caller = async () => {
        while (next < spec.tasks && clock() - begun < spec.seconds * 1000) await producer.one(payload(next++));
    };
    await Promise.all(Array.from({ length: spec.callers }, caller));
    const seconds = (clock() - begun) / 1000;
    const stored = (await peer.unfinished()) - before;
    return { stored, seconds, tasks_per_s: stored / seconds };
});

// One task at a time into an empty queue.
const latency = () => withCrew((crew) => withProducer(async (producer) => {
    await crew.go({ wait: true });
    await sleep(1000);
    for (let i = 0; i < 20; i++) await producer.one(payload(i));
    const acknowledged = [];
    const gap = spec.gap ?? 20;
    const begun = clock();
    let sent = 0;
    for (; sent < spec.tasks && clock() - begun < spec.seconds * 1000; sent++) {
        const wait = begun + sent * gap - clock();
        if (wait > 0) await sleep(wait);
        const at = clock();
        producer.one(payload(sent, at)).then(() => acknowledged.push(clock() - at));
    }
    const deadline = clock() + 5000;
    while (crew.handled < sent + 20 && clock() < deadline) await sleep(20);
    const { delays } = await crew.tell();
    return { ...percentiles(delays), acknowledged_p50_ms: percentiles(acknowledged).p50_ms, seen: delays.length, of: sent };
}));

// Tasks come when they come: delays count from when each was due to be submitted.
const openloop = () => withCrew((crew) => withProducer(async (producer) => {
    await crew.go({ wait: true });
    await sleep(1000);
    const total = spec.rate * spec.seconds;
    let sent = 0;
    let accepted = 0;
    let refused = 0;
    const begun = clock();
    while (sent < total && sent - accepted - refused < 20_000) {
        const due = Math.min(total, Math.floor((clock() - begun) / 1000 * spec.rate) + 1);
        for (; sent < due; sent++) {
            producer.one(payload(sent, begun + sent / spec.rate * 1000)).then(() => { accepted += 1; }, () => { refused += 1; });
        }
        await sleep(1);
    }
    const patience = clock() + 10_000;
    while (accepted + refused < sent && clock() < patience) await sleep(5);
    const seconds = (clock() - begun) / 1000;
    const behind = accepted - crew.handled;
    const drainUntil = clock() + 5000;
    while (crew.handled < accepted && clock() < drainUntil) await sleep(5);
    const figures = percentiles((await crew.tell()).delays);
    return {
        rate: spec.rate, ...figures, accepted, refused, accepted_per_s: accepted / seconds, behind_at_end: behind,
        keeps_up: accepted >= total * 0.99 && seconds < spec.seconds * 1.05 + 0.5 && figures.p99_ms < 1000,
    };
}));

// Bulk submits and a worker, with at most `most` tasks between them, while somebody holds an old snapshot.
async function pinned() {
    const holder = new pg.Client({ connectionString: spec.url });
    await holder.connect();
    await holder.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await holder.query('SELECT count(*) FROM pg_class');
    try {
        return await withCrew((crew) => withProducer((producer) => closedLoop(crew, producer)));
    } finally {
        await holder.end();
    }
}

async function closedLoop(crew, producer) {
    const most = 2000;
    const chunk = 200;
    let sent = 0;
    let stopped = false;
    const lane = async () => {
        while (!stopped) {
            if (sent - crew.handled < most) {
                sent += chunk;
                await producer.many(batch(sent - chunk, chunk));
            } else {
                await sleep(2);
            }
        }
    };
    await crew.go({ wait: true });
    const lanes = [lane(), lane()];
    const windows = [];
    let last = 0;
    const begun = clock();
    for (let window = 1; window * spec.window <= spec.seconds; window++) {
        await sleep(Math.max(0, begun + window * spec.window * 1000 - clock()));
        windows.push((crew.handled - last) / spec.window);
        last = crew.handled;
    }
    stopped = true;
    await Promise.race([Promise.all(lanes), sleep(5000)]);
    return { windows, tasks_per_s: last / (windows.length * spec.window), ratio: windows.at(-1) / windows[0] };
}

// A worker with nothing to do. Whoever started this counts statements between the two marks.
const idle = () => withCrew(async (crew) => {
    await crew.go({ wait: true });
    await sleep(spec.settle * 1000);
    const cpu = (await crew.tell()).cpu;
    const commands = peer.commands ? await peer.commands() : 0;
    console.log('mark begin');
    await sleep(spec.seconds * 1000);
    console.log('mark end');
    const used = (await crew.tell()).cpu - cpu;
    return {
        cpu_percent: used / spec.seconds * 100,
        ...(peer.commands ? { statements_per_min: ((await peer.commands()) - commands - 1) / spec.seconds * 60 } : {}),
    };
});

const kinds = { fill, drain, submitMany, submitEach, latency, openloop, pinned, idle };
try {
    console.log('result ' + JSON.stringify({ ...(await kinds[spec.what]()), tuning: spec.tuned ? peer.tuning : {} }));
    process.exit(0);
} catch (error) {
    console.error(error?.stack ?? String(error));
    process.exit(1);
}
