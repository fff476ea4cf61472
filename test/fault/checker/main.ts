import { runVerdict } from './program.ts';

process.exitCode = await runVerdict(process.argv.slice(2), { say: console.log, complain: console.error });
