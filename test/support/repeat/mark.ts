/**
 * Loaded before a test file: writes a mark when the file starts a process or listens, so that the repeater knows the
 * suites that depend on the machine.
 */
import childProcess from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';

const file = process.env.REVEILLE_REPEAT_MARK;
// Children of the test inherit neither the variable nor the mark.
delete process.env.REVEILLE_REPEAT_MARK;

if (file !== undefined) {
  const mark = (what: string) => appendFileSync(file, `${what}\n`);
  const { listen } = net.Server.prototype;
  net.Server.prototype.listen = function (this: net.Server, ...args: unknown[]) {
    mark('listens');
    return (listen as (...args: unknown[]) => net.Server).apply(this, args);
  } as typeof listen;
  const { spawn } = childProcess.ChildProcess.prototype as unknown as { spawn(options: unknown): unknown };
  Object.assign(childProcess.ChildProcess.prototype, {
    spawn(this: unknown, options: unknown) {
      mark('starts processes');
      return spawn.call(this, options);
    },
  });
  syncBuiltinESMExports();
}
