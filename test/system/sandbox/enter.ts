/** Starts a script in the sandbox and passes on what it prints. Arguments: kind, own folder, user, script, task. */
import { spawnSync } from 'node:child_process';
import { NO_SANDBOX_PATHS, Sandbox } from '../../../src/kit/process/isolation.ts';
import { programFolders } from '../../../src/mcp-host/bundled-programs.ts';

const [kind, own, userText, script, task] = process.argv.slice(2) as [string, string, string, string, string];
const user = JSON.parse(userText) as { uid: number; gid: number } | null;
const { SECRET_OUTSIDE: _, ...env } = process.env as Record<string, string>;
const tools = programFolders();
const { command } = await new Sandbox('required', { ...NO_SANDBOX_PATHS, tools }, process.env.PATH).wrap({
  command: [process.execPath, script, task],
  ...{ cwd: own, env, words: [process.execPath, script] },
  ...(user ? { user } : {}),
  ...(kind === 'closed' ? { room: { writable: [own], readable: tools, network: false } } : {}),
});
const { status, stdout, stderr } = spawnSync(command[0]!, command.slice(1), {
  ...{ cwd: own, env, ...user, maxBuffer: 64 * 1024 * 1024 },
});
process.stdout.write(stdout);
process.stderr.write(stderr);
process.exitCode = status ?? 1;
