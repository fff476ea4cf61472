#!/usr/bin/env node
// The only program file in plain JavaScript, in syntax that every Node since 12 can parse. An older Node cannot parse the
// other files: this file continues with the Node of the checkout, or prints the required version.
const REQUIRED_VERSION = 24;
const SIGNALS = ['SIGTERM', 'SIGHUP', 'SIGINT', 'SIGQUIT'];
/** Set for the process that this program starts under an older Node. */
const LAUNCHED = 'REVEILLE_LAUNCHED';
/** Interval of the check for npm's shell. */
const SHELL_LOOK_MS = 500;
const { node } = process.versions;

function failForVersion() {
  console.error(
    `reveille needs Node ${REQUIRED_VERSION} or newer (this is Node ${node}); install it from https://nodejs.org, or run "npm ci && npm start" in a checkout, which brings its own`,
  );
  // A prompt hook must never block a prompt.
  const isHook = process.argv[2] === 'time' && process.argv[3] === 'hook';
  process.exit(isHook ? 0 : 1);
}

/** Runs this program with the Node that `npm ci` installs in a checkout, and ends as that process ends. */
function continueWithBundledNode([{ spawn }, { existsSync, realpathSync }, { join }, { isatty }, { fileURLToPath }]) {
  // The real path: Node resolves links of its main program, unless --preserve-symlinks-main is given.
  const program = realpathSync(fileURLToPath(import.meta.url));
  const bundled = join(program, `../../node_modules/node/bin/node${process.platform === 'win32' ? '.exe' : ''}`);
  // The bundled Node itself can be too old.
  if (!existsSync(bundled) || realpathSync(bundled) === realpathSync(process.execPath)) return failForVersion();
  const child = spawn(bundled, [...process.execArgv, program, ...process.argv.slice(2)], {
    // The channel carries no messages. Its end shows the child that this process has ended, even by SIGKILL.
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: Object.assign({}, process.env, { [LAUNCHED]: '1' }),
  });
  // A terminal sends SIGINT and SIGQUIT to both processes. The program exits at once on a second signal.
  const isAtTerminal = [0, 1, 2].some((fd) => isatty(fd));
  const forward = (signal) => {
    if (!isAtTerminal || signal === 'SIGTERM' || signal === 'SIGHUP') child.kill(signal);
  };
  for (const signal of SIGNALS) process.on(signal, forward);
  // As in "reveille up", which sees only this process: npm sends SIGTERM to its shell alone.
  const shell = process.ppid;
  const checkShell = () => {
    if (process.ppid === shell) return;
    clearInterval(look);
    child.kill('SIGTERM');
  };
  const look = process.env.npm_lifecycle_event === 'start' ? setInterval(checkShell, SHELL_LOOK_MS) : undefined;
  child.once('error', () => child.pid === undefined && failForVersion());
  child.once('exit', (status, signal) => {
    clearInterval(look);
    if (child.connected) child.disconnect();
    for (const name of SIGNALS) process.removeListener(name, forward);
    process.exitCode = status === null ? 1 : status;
    if (signal !== null) process.kill(process.pid, signal);
  });
}

/** Ends this process, as by SIGTERM, when the process that started it for its newer Node has ended. */
function endWithLauncher() {
  if (process.env[LAUNCHED] === undefined) return;
  delete process.env[LAUNCHED];
  const end = () => process.kill(process.pid, 'SIGTERM');
  process.once('disconnect', end);
  if (process.channel) process.channel.unref();
  if (!process.connected) end();
}

endWithLauncher();
if (Number(node.split('.')[0]) < REQUIRED_VERSION)
  Promise.all(['node:child_process', 'node:fs', 'node:path', 'node:tty', 'node:url'].map((name) => import(name)))
    .then(continueWithBundledNode)
    .catch(failForVersion);
else
  import('node:module')
    .then(({ enableCompileCache }) => {
      // Node executes cached code without a check. Its default folder is below the folder for temporary files, where a
      // sandboxed program or another user could place code. A folder beside this code has the same write permissions as the
      // code. Without write permission there is no cache.
      enableCompileCache(`${import.meta.dirname}/../node_modules/.cache/reveille`);
      return import('./lean-modules.ts');
    })
    .then(() => import('./reveille.ts'));
