import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, existsSync, globSync, readFileSync } from 'node:fs';
import { join, matchesGlob } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { VERSION } from '../../../src/wire/version.ts';
import { eventually } from '../../support/eventually.ts';
import { packedTarball } from '../../support/package.ts';
import { reservePort } from '../../support/ports.ts';
import { startRegistry } from '../../support/stand-ins/registry.ts';
import { sharedOwner, temporaryFolder } from '../../support/temporary.ts';
import { DEPLOY } from './containers.ts';
import { Image, stagesOf, whyNotBuilt } from './image.ts';

const ROOT = join(DEPLOY, '..');

test('the first stage has all inputs of the package, and uses the same commands as the tests', () => {
  const [stage] = stagesOf(readFileSync(join(DEPLOY, 'Dockerfile'), 'utf8'));
  const steps = stage!.filter(({ keyword }) => /COPY|RUN/.test(keyword)).map(({ rest }) => rest);
  assert.deepEqual(steps, [
    'package.json package-lock.json ./',
    'npm ci --no-audit --no-fund',
    '. .',
    'npm run --silent package && mv dist/reveille-*.tgz /reveille.tgz',
  ]);
  // Files that are not sent to the builder cannot be packed.
  const ignored = readFileSync(join(ROOT, '.dockerignore'), 'utf8')
    .split('\n')
    .filter((line) => /^[^#]/.test(line));
  const sources = globSync('{bin,src,packaging,agents,skills,schemas,docs,integrations,examples}/**/*', { cwd: ROOT });
  assert.deepEqual(
    sources.filter((path) => ignored.some((one) => matchesGlob(path, one) || path.startsWith(`${one}/`))),
    [],
  );
});

describe('the image, its steps performed in a namespace', { skip: whyNotBuilt() ?? false }, () => {
  const owner = sharedOwner();
  let image: Image;

  before(async () => {
    const root = temporaryFolder(owner);
    chmodSync(root, 0o755);
    const registry = await startRegistry(owner, temporaryFolder(owner));
    image = await Image.build(root, { '/reveille.tgz': await packedTarball() }, registry);
  });
  after(() => owner.end());

  test('is built: the package readable for all users, the health check, a folder for the data', async () => {
    assert.deepEqual(
      image.steps.map((step) => step.split(' ').slice(0, 3).join(' ')),
      ['RUN npm install', 'COPY deploy/healthcheck.mjs /usr/local/lib/reveille-healthcheck.mjs', 'RUN install -d'],
    );
    const { stdout, stderr } = await image.inside(['reveille', '--version']);
    assert.equal(stdout, `${VERSION}\n`, stderr);
    assert.match((await image.inside(['reveille', 'doctor', '--help'])).stdout, /^Usage: reveille doctor/);
    assert.match((await image.inside([...image.entry, ...image.command])).stdout, /^Usage: reveille/);
  });

  test('runs as a user unknown to the machine, and can write only its data', async () => {
    const script =
      'id -u; for f in / /usr/local/lib /etc /data /tmp; do touch $f/x 2>/dev/null && echo $f; done; stat -c %a /data';
    const { stdout } = await image.inside(['/bin/sh', '-c', script]);
    assert.deepEqual(stdout.trim().split('\n'), ['65532', '/data', '/tmp', '700']);
  });

  test('its daemon is healthy by its health check, and ends by its stop signal', async () => {
    const port = String(await reservePort());
    const secrets = ['TOKEN', 'AGENT_AUTH_SECRET', 'ADMIN_TOKEN', 'WAKE_TOKEN'].map((name) => [
      `CHRONOS_${name}`,
      randomBytes(24).toString('hex'),
    ]);
    const environment = {
      ...Object.fromEntries(secrets),
      CHRONOS_PORT: port,
      HEALTH_URL: `http://127.0.0.1:${port}/healthz`,
    };
    const daemon = image.start(['chronosd'], environment);
    let output = '';
    for (const stream of [daemon.stdout!, daemon.stderr!]) stream.on('data', (text) => (output += text));
    owner.after(() => daemon.kill('SIGKILL'));
    await eventually('it answers', async () => {
      assert.equal(daemon.exitCode, null, output);
      return fetch(environment.HEALTH_URL).then(
        ({ ok }) => ok,
        () => false,
      );
    });
    const well = await image.inside(image.health, environment);
    assert.equal(well.code, 0, well.stderr);
    // An engine passes a signal on to the process of the entry point; bubblewrap does not.
    const pids = globSync('/proc/[0-9]*/cmdline').filter((file) => {
      const args = existsSync(file) ? readFileSync(file, 'utf8').split('\0') : [];
      return args[0] === 'node' && args.includes('chronosd') && isBelow(Number(file.split('/')[2]), daemon.pid!);
    });
    assert.equal(pids.length, 1);
    const exited = once(daemon, 'exit');
    process.kill(Number(pids[0]!.split('/')[2]), image.stopSignal);
    assert.deepEqual(await exited, [0, null], output);
    assert.notEqual((await image.inside(image.health, environment)).code, 0);
  });
});

/** Whether a process descends from another. */
function isBelow(pid: number, above: number): boolean {
  for (let at = pid; at > 1; ) {
    if (at === above) return true;
    at = Number(/^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${at}/status`, 'utf8'))![1]);
  }
  return false;
}
