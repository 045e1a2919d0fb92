// The worker processes of one measurement.
import { fork } from 'node:child_process';
import { clock, sleep } from './common.mjs';

class Member {
    constructor(spec) {
        this.handled = 0;
        this.first = 0;
        this.process = fork(new URL('./worker.mjs', import.meta.url), [JSON.stringify(spec)], {
            stdio: ['ignore', 'ignore', process.env.COMPARE_VERBOSE ? 'inherit' : 'ignore', 'ipc'],
        });
        this.process.on('message', (message) => Object.assign(this, message));
        this.process.on('exit', () => { this.gone = true; });
    }
}

export class Crew {
    // Loads the libraries, so that this is not measured.
    static async load(spec, count) {
        const crew = new Crew();
        crew.members = Array.from({ length: count }, () => new Member(spec));
        await crew.until((member) => member.loaded, 60e3);
        return crew;
    }

    async go({ wait }) {
        for (const member of this.members) member.process.send({ go: true });
        if (wait) await this.until((member) => member.working, 60e3);
    }

    get handled() {
        return this.members.reduce((sum, member) => sum + member.handled, 0);
    }

    // When the first handler ran: connecting and preparing statements is not measured.
    get first() {
        const begun = this.members.map((member) => member.first).filter((at) => at > 0);
        return begun.length > 0 ? Math.min(...begun) : 0;
    }

    async tell() {
        for (const member of this.members) {
            member.delays = null;
            member.process.send({ tell: true });
        }
        await this.until((member) => member.delays, 30e3);
        return {
            delays: this.members.flatMap((member) => member.delays),
            cpu: this.members.reduce((sum, member) => sum + member.cpu, 0),
        };
    }

    async until(condition, patience) {
        const deadline = clock() + patience;
        while (!this.members.every(condition)) {
            if (this.members.some((member) => member.gone)) throw new Error('a worker process ended by itself');
            if (clock() > deadline) throw new Error('a worker process does not answer');
            await sleep(5);
        }
    }

    stop() {
        for (const member of this.members) member.process.kill('SIGKILL');
    }
}
