/**
 * The image of deploy/Dockerfile without a container engine: its second stage performed step by step in a root folder,
 * inside bubblewrap, as root. Its result runs as the file says: its user, a read-only root, its entry point, its health
 * check. This machine's /usr and the Node of the tests replace the base image.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { needs } from '../../support/tools.ts';
import { type CommandOutput, DEPLOY } from './containers.ts';

const ROOT = join(DEPLOY, '..');

export type Instruction = { readonly keyword: string; readonly flags: readonly string[]; readonly rest: string };

/** Each stage with its instructions. */
export function stagesOf(text: string): Instruction[][] {
  const lines = text
    .replace(/^\s*#.*\n/gm, '')
    .replace(/\\\n/g, ' ')
    .split('\n');
  const stages: Instruction[][] = [];
  for (const line of lines.filter((one) => one.trim() !== '')) {
    const [, keyword, flags = '', rest] = /^(\w+)((?:\s+--\S+)*)\s+(.*)$/.exec(line.trim())!;
    if (keyword === 'FROM') stages.push([]);
    stages.at(-1)!.push({ keyword: keyword!, flags: flags.split(/\s+/).filter(Boolean), rest: rest!.trim() });
  }
  return stages;
}

/** Inputs of a step that need a network, and their replacements. */
const NOT_HERE: readonly { step: RegExp; instead: () => void }[] = [
  {
    step: /^apt-get update .* apt-get install .* bubblewrap git /,
    instead: () => {
      for (const program of ['bwrap', 'git']) assert.ok(existsSync(join('/usr/bin', program)), program);
    },
  },
];

const run = (args: readonly string[]): Promise<CommandOutput> =>
  new Promise((resolve) => {
    execFile('bwrap', args, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code) || 1, stdout, stderr }),
    );
  });

export class Image {
  readonly #root: string;
  readonly environment: Record<string, string> = {
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  };
  user = '0:0';
  entry: string[] = [];
  command: string[] = [];
  health: string[] = [];
  stopSignal: NodeJS.Signals = 'SIGTERM';
  readonly volumes: string[] = [];
  /** The performed steps, as written in the file. */
  readonly steps: string[] = [];

  private constructor(root: string) {
    this.#root = root;
  }

  /**
   * @param root an empty folder that all users may enter
   * @param built files of the previous stage, by their names in it
   * @param registry where npm asks; it needs none
   */
  static async build(root: string, built: Readonly<Record<string, string>>, registry: string): Promise<Image> {
    const image = new Image(root);
    image.#layBase();
    const stage = stagesOf(readFileSync(join(DEPLOY, 'Dockerfile'), 'utf8')).at(-1)!;
    for (const instruction of stage) await image.#take(instruction, built, registry);
    return image;
  }

  #layBase(): void {
    const folders = ['usr/local/bin', 'usr/local/lib', 'etc', 'proc', 'dev', 'tmp', 'root', 'run', 'var'];
    for (const folder of folders) mkdirSync(join(this.#root, folder), { recursive: true });
    for (const name of ['bin', 'sbin', 'lib', 'lib64']) symlinkSync(`usr/${name}`, join(this.#root, name));
    for (const name of ['passwd', 'group', 'nsswitch.conf', 'hosts'])
      if (existsSync(join('/etc', name))) copyFileSync(join('/etc', name), join(this.#root, 'etc', name));
    // As the official image has them.
    copyFileSync(process.execPath, join(this.#root, 'usr/local/bin/node'));
    symlinkSync('/usr/lib/node_modules/npm/bin/npm-cli.js', join(this.#root, 'usr/local/bin/npm'));
  }

  /** The folder as a root, with the machine's replacement of the base image. */
  #mounts(): string[] {
    return [
      ...[
        '--bind',
        this.#root,
        '/',
        '--ro-bind',
        '/usr',
        '/usr',
        '--bind',
        join(this.#root, 'usr/local'),
        '/usr/local',
      ],
      ...[
        '--proc',
        '/proc',
        '--dev',
        '/dev',
        '--perms',
        '1777',
        '--tmpfs',
        '/tmp',
        '--unshare-pid',
        '--unshare-ipc',
        '--die-with-parent',
      ],
      ...['--clearenv', ...Object.entries(this.environment).flatMap(([name, value]) => ['--setenv', name, value])],
    ];
  }

  async #take({ keyword, flags, rest }: Instruction, built: Readonly<Record<string, string>>, registry: string) {
    switch (keyword) {
      case 'FROM':
        assert.match(rest, /^node:24-/);
        return;
      case 'RUN': {
        const missing = NOT_HERE.find(({ step }) => step.test(rest));
        if (missing) return missing.instead();
        const binds = flags.flatMap((flag) => {
          const { source, target } = Object.fromEntries(flag.split(',').map((pair) => pair.split('='))) as Record<
            string,
            string
          >;
          return ['--ro-bind', built[source!]!, target!];
        });
        const asRoot = ['--cap-add', 'ALL', '--setenv', 'npm_config_registry', registry, '--setenv', 'HOME', '/root'];
        const { code, stderr } = await run([...this.#mounts(), ...asRoot, ...binds, '--', '/bin/sh', '-c', rest]);
        assert.equal(code, 0, `RUN ${rest}: ${stderr}`);
        break;
      }
      case 'COPY': {
        const [from, to] = rest.split(/\s+/) as [string, string];
        mkdirSync(dirname(join(this.#root, to)), { recursive: true });
        copyFileSync(join(ROOT, from), join(this.#root, to));
        for (const flag of flags)
          chmodSync(join(this.#root, to), Number.parseInt(/^--chmod=(\d+)$/.exec(flag)![1]!, 8));
        break;
      }
      case 'ENV':
        for (const pair of rest.split(/\s+/)) this.environment[pair.split('=')[0]!] = pair.split('=')[1]!;
        return;
      case 'USER':
        this.user = rest;
        return;
      case 'VOLUME':
        this.volumes.push(rest);
        return;
      case 'STOPSIGNAL':
        this.stopSignal = rest as NodeJS.Signals;
        return;
      case 'HEALTHCHECK':
        this.health = JSON.parse(rest.replace(/^.*?CMD /, ''));
        return;
      case 'ENTRYPOINT':
        this.entry = JSON.parse(rest);
        return;
      case 'CMD':
        this.command = JSON.parse(rest);
        return;
      default:
        assert.fail(`${keyword} is not known here`);
    }
    this.steps.push(`${keyword} ${rest}`);
  }

  /**
   * The bubblewrap arguments of a container: the image's user without any right, and only the volumes and /tmp
   * writable.
   */
  #container(args: readonly string[], environment: Readonly<Record<string, string>>): string[] {
    const [uid, gid] = this.user.split(':');
    const rights = ['CAP_SETUID', 'CAP_SETGID', 'CAP_SETPCAP'].flatMap((name) => ['--cap-add', name]);
    return [
      ...this.#mounts(),
      ...Object.entries(environment).flatMap(([name, value]) => ['--setenv', name, value]),
      ...['--remount-ro', '/', '--remount-ro', '/usr/local', ...rights],
      ...this.volumes.flatMap((volume) => ['--bind', join(this.#root, volume), volume]),
      ...[
        '--',
        'setpriv',
        `--reuid=${uid}`,
        `--regid=${gid}`,
        '--clear-groups',
        '--bounding-set=-all',
        '--no-new-privs',
      ],
      ...args,
    ];
  }

  /**
   * Like `docker run … sh -c`: a command in a new container, or in a running one, since they share the writable
   * folders.
   */
  inside(args: readonly string[], environment: Readonly<Record<string, string>> = {}): Promise<CommandOutput> {
    return run(this.#container(args, environment));
  }

  /** `docker run IMAGE ARGUMENTS`. */
  start(args: readonly string[], environment: Readonly<Record<string, string>>): ChildProcess {
    const all = [...this.entry, ...(args.length > 0 ? args : this.command)];
    return spawn('bwrap', this.#container(all, environment), { stdio: ['ignore', 'pipe', 'pipe'] });
  }
}

/** The reason why it cannot be built here; `undefined` when it can. */
export function whyNotBuilt(): string | undefined {
  if (process.platform !== 'linux') return 'bubblewrap is of Linux';
  if (process.getuid?.() !== 0) return 'only root may give files to another user';
  const missing = needs(['bubblewrap', 'setpriv', 'git']);
  if (missing !== false) return missing;
  const npm = '/usr/lib/node_modules/npm/bin/npm-cli.js';
  return existsSync(npm) ? undefined : `${npm} is missing`;
}
