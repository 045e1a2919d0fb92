// One worker process of one peer, driven by its parent: {go}, then {tell}. Counts what it handled and, where the payload
// carries a time, how long after that its handler began.
import { clock } from './common.mjs';

const spec = JSON.parse(process.argv[2]);
const { default: peer } = await import(`./${spec.peer}.mjs`);

let handled = 0;
let reported = 0;
let first = 0;
const delays = [];

function handle(task) {
    const now = clock();
    handled += 1;
    if (first === 0) first = now;
    if (task?.at) delays.push(now - task.at);
}

setInterval(() => {
    if (handled === reported) return;
    reported = handled;
    process.send({ handled, first });
}, 10);

process.on('message', async (message) => {
    if (message.go) {
        await peer(spec).worker(handle);
        process.send({ working: true });
    }
    if (message.tell) {
        const { user, system } = process.cpuUsage();
        process.send({ handled, first, delays, cpu: (user + system) / 1e6 });
    }
});
process.on('disconnect', () => process.exit(0));
process.on('unhandledRejection', () => {});
process.send({ loaded: true });
