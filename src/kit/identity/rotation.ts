/**
 * The key file of an identity whose key may be replaced. The new key is stored beside the file, as `<file>.next`, before
 * chronosd learns of it, and takes the file's place once chronosd accepts it. So one of the two files has the accepted
 * key at any moment, also after a crash.
 */
import { rmSync } from 'node:fs';
import { ReveilleError } from '../../wire/errors.ts';
import { type AgentIdentity, agentIdentity } from './agent.ts';
import { type AgentKey, generateKey, loadKeyFile, readKeyFile, writeKeyFile } from './keys.ts';
import { movePrivateFile } from './private-file.ts';

/** Where the new key of a rotation waits. */
export const nextKeyFile = (keyFile: string) => `${keyFile}.next`;

/** Another key of the same label, to be tried when chronosd refuses the one at hand. */
export type Successor = {
  readonly identity: AgentIdentity;
  /** chronosd accepts the key. */
  accepted(): Promise<void>;
};

/** An identity from a key file. It follows a rotation by another process, and completes an interrupted one. */
export type FileIdentity = AgentIdentity & { successors(): Successor[] };

/** Keeps other processes from rotating the key until the result is called. Most commands never need SQLite for it. */
async function lockRotation(keyFile: string): Promise<() => void> {
  const { ownFile } = await import('../sqlite/file-owner.ts');
  return ownFile(`${keyFile}.rotation`);
}

/** Puts the new key in the place of the file, if it still waits there. Call it while the rotation is locked. */
function adopt(keyFile: string, publicKey: string): void {
  if (loadKeyFile(nextKeyFile(keyFile))?.publicKeyHex === publicKey) movePrivateFile(nextKeyFile(keyFile), keyFile);
}

/**
 * @param key of the file, if the caller has read it
 * @throws ReveilleError as `agentIdentity` and `readKeyFile`
 */
export function fileIdentity(label: string, keyFile: string, key: AgentKey = readKeyFile(keyFile)): FileIdentity {
  const keyAt = (path: string): AgentKey | undefined => {
    try {
      return loadKeyFile(path);
    } catch {
      // The key at hand was refused, and its error is the one to report.
      return undefined;
    }
  };
  const successors = (): Successor[] =>
    [keyFile, nextKeyFile(keyFile)].flatMap((path) => {
      const other = keyAt(path);
      if (!other || other.publicKeyHex === key.publicKeyHex) return [];
      const accepted = async () => {
        if (path === keyFile) return;
        let release: (() => void) | undefined;
        try {
          release = await lockRotation(keyFile);
          adopt(keyFile, other.publicKeyHex);
        } catch {
          // The key is usable where it is. Another process rotates it, or the folder belongs to another user.
        } finally {
          release?.();
        }
      };
      return [{ identity: agentIdentity(label, other), accepted }];
    });
  return Object.freeze({ ...agentIdentity(label, key), successors });
}

/**
 * Replaces the key of a file. A rotation that was interrupted is continued with its new key, or with another one if that
 * was revoked since.
 *
 * @param carryOut has chronosd replace the old key by the new one; it may be called again for a rotation that was
 *   carried out before. It throws `conflict` when the new key can never be used
 * @throws ReveilleError `unavailable` while another process rotates the key; as `readKeyFile`; as `carryOut`, after
 *   which both keys are still stored
 */
export async function rotateKeyFile<T>(
  label: string,
  keyFile: string,
  carryOut: (from: AgentIdentity, to: AgentIdentity) => Promise<T>,
): Promise<T> {
  const release = await lockRotation(keyFile);
  try {
    const from = agentIdentity(label, readKeyFile(keyFile));
    const replaceBy = async (key: AgentKey): Promise<T> => {
      const done = await carryOut(from, agentIdentity(label, key));
      adopt(keyFile, key.publicKeyHex);
      return done;
    };
    const begin = async (): Promise<T> => {
      const key = generateKey();
      writeKeyFile(nextKeyFile(keyFile), key);
      return await replaceBy(key);
    };
    const waiting = loadKeyFile(nextKeyFile(keyFile));
    if (!waiting) return await begin();
    try {
      return await replaceBy(waiting);
    } catch (thrown) {
      if (!(thrown instanceof ReveilleError && thrown.code === 'conflict')) throw thrown;
      rmSync(nextKeyFile(keyFile));
      return await begin();
    }
  } finally {
    release();
  }
}
