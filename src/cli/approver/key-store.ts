/**
 * The system's keyring: the Secret Service of a Linux desktop through `secret-tool`, the keychain of macOS through
 * `security`. They run as programs, because a program that hangs or prompts an absent user can be ended. The secret goes
 * through standard input: arguments are visible to other users.
 */
import { spawn } from 'node:child_process';
import type { Settings } from '../../wire/settings.ts';

const SERVICE = 'reveille-approver';
const SECRET = /^[0-9a-f]{64}$/;

export type KeyStore = {
  readonly kind: 'secret-service' | 'keychain';
  /** Stores a seed under its public key. @returns whether it can be read again */
  put(publicKey: string, seedHex: string, limitMs: number): Promise<boolean>;
  /** @returns `undefined` when it is missing, or the keyring does not return it in time */
  get(publicKey: string, limitMs: number): Promise<string | undefined>;
  remove(publicKey: string, limitMs: number): Promise<void>;
};

/** The environment of these programs; it contains nothing of Reveille. */
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

/** @returns its output, or `undefined` when it failed, is missing, or was ended after the limit */
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
      // With its children: a window that asks for a password.
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
      // `-i` reads the command from standard input; the exit status does not report errors of the command.
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
 * The keyring of this system, if there is one. Whether it works shows on use.
 *
 * @param asked whether the user named it: then it is tried in any case
 */
export function systemKeyStore(environment: Settings, asked: boolean): KeyStore | undefined {
  if (process.platform === 'darwin') return keychain(environment);
  if (process.platform !== 'linux') return undefined;
  return asked || environment.DBUS_SESSION_BUS_ADDRESS ? secretService(environment) : undefined;
}
