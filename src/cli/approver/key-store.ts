/**
 * The system's own store of keys: the Secret Service of a Linux desktop through `secret-tool`, the keychain of macOS
 * through `security`. They are asked as programs, not as a library in this process: one that hangs, or asks somebody
 * who is not there, can be ended. The secret goes through standard input, never into an argument, which others could
 * read.
 */
import { spawn } from 'node:child_process';
import type { Settings } from '../../wire/settings.ts';

const SERVICE = 'reveille-approver';
const SECRET = /^[0-9a-f]{64}$/;

export type KeyStore = {
  readonly kind: 'secret-service' | 'keychain';
  /** Keeps a seed under its public key. @returns whether it can be read again */
  put(publicKey: string, seedHex: string, limitMs: number): Promise<boolean>;
  /** @returns `undefined` when it is not there, or the store does not give it out in time */
  get(publicKey: string, limitMs: number): Promise<string | undefined>;
  remove(publicKey: string, limitMs: number): Promise<void>;
};

/** Whom these programs need to find; nothing of ours is among it. */
const PASSED_ON = [
  'PATH',
  'HOME',
  'USER',
  'DBUS_SESSION_BUS_ADDRESS',
  'XDG_RUNTIME_DIR',
  'DISPLAY',
  'WAYLAND_DISPLAY',
  'LANG',
];

/** @returns what it printed, or `undefined` when it failed, is not there, or took too long: it is ended then */
function ask(
  environment: Settings,
  [program, ...words]: readonly [string, ...string[]],
  { input, limitMs }: { input?: string; limitMs: number },
): Promise<string | undefined> {
  const env = Object.fromEntries(PASSED_ON.flatMap((name) => (environment[name] ? [[name, environment[name]]] : [])));
  return new Promise((resolve) => {
    const child = spawn(program, words, { env, stdio: ['pipe', 'pipe', 'ignore'], detached: true });
    let said = '';
    const end = (answer: string | undefined) => {
      clearTimeout(timer);
      child.stdout.destroy();
      child.stdin.destroy();
      child.unref();
      resolve(answer);
    };
    const timer = setTimeout(() => {
      // With all that it may have started: a window that asks for a password.
      if (child.pid !== undefined) {
        try {
          process.kill(-child.pid, 'SIGKILL');
        } catch {
          // It has just ended.
        }
      }
      end(undefined);
    }, limitMs);
    child.on('error', () => end(undefined));
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    child.once('close', (code) => end(code === 0 ? said : undefined));
    child.stdin.on('error', () => {}).end(input ?? '');
  });
}

function secretService(environment: Settings): KeyStore {
  const about = (publicKey: string) => ['application', SERVICE, 'public_key', publicKey];
  const store: KeyStore = {
    kind: 'secret-service',
    async put(publicKey, seedHex, limitMs) {
      const words = ['store', '--label=Reveille: key of an approver', ...about(publicKey)];
      const stored = await ask(environment, ['secret-tool', ...words], { input: seedHex, limitMs });
      return stored !== undefined && (await store.get(publicKey, limitMs)) === seedHex;
    },
    async get(publicKey, limitMs) {
      const said = (await ask(environment, ['secret-tool', 'lookup', ...about(publicKey)], { limitMs }))?.trim();
      return said !== undefined && SECRET.test(said) ? said : undefined;
    },
    async remove(publicKey, limitMs) {
      await ask(environment, ['secret-tool', 'clear', ...about(publicKey)], { limitMs });
    },
  };
  return store;
}

function keychain(environment: Settings): KeyStore {
  const about = (publicKey: string) => ['-a', publicKey, '-s', SERVICE];
  const store: KeyStore = {
    kind: 'keychain',
    async put(publicKey, seedHex, limitMs) {
      // `-i` takes the command from standard input; its status says nothing of it.
      const input = `add-generic-password -U ${about(publicKey).join(' ')} -w ${seedHex}\n`;
      const stored = await ask(environment, ['security', '-i'], { input, limitMs });
      return stored !== undefined && (await store.get(publicKey, limitMs)) === seedHex;
    },
    async get(publicKey, limitMs) {
      const words = ['find-generic-password', ...about(publicKey), '-w'] as const;
      const said = (await ask(environment, ['security', ...words], { limitMs }))?.trim();
      return said !== undefined && SECRET.test(said) ? said : undefined;
    },
    async remove(publicKey, limitMs) {
      await ask(environment, ['security', 'delete-generic-password', ...about(publicKey)], { limitMs });
    },
  };
  return store;
}

/**
 * The store of this system, where it has one. Whether it works shows when it is used.
 *
 * @param asked whether the person named it: then it is tried even where nothing speaks for it
 */
export function systemKeyStore(
  environment: Settings,
  asked: boolean,
  platform: NodeJS.Platform = process.platform,
): KeyStore | undefined {
  if (platform === 'darwin') return keychain(environment);
  if (platform !== 'linux') return undefined;
  return asked || environment.DBUS_SESSION_BUS_ADDRESS ? secretService(environment) : undefined;
}
