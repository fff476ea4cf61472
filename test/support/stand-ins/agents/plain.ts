/** Stand-in for a custom agent: text on standard input, an answer in plain text. */
import { misbehave, noteCall, readStdin, takeMode } from './executable.ts';

const message = readStdin();
const mode = takeMode();
noteCall('plain', message);
if (!(await misbehave(mode))) console.log(`plainly heard ${Buffer.byteLength(message)} bytes`);
