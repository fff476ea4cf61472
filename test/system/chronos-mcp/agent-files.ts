/** A temporary folder with an agent's key, and the variables that point the MCP server at a chronosd. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateKey, writeKeyFile } from '../../../src/kit/identity/keys.ts';
import type { StandInChronosd } from '../../support/stand-ins/chronosd.ts';

export type AgentFiles = {
  readonly keyFile: string;
  readonly userId: string;
  /** The variables for one chronosd. */
  envFor(chronosd: Pick<StandInChronosd, 'url' | 'token'>): Record<string, string>;
  remove(): void;
};

export function makeAgentFiles(userId = '0195f2b1-7c1e-7000-8000-000000000001'): AgentFiles {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-agent-'));
  const keyFile = join(folder, 'executor.key');
  writeKeyFile(keyFile, generateKey());
  return {
    keyFile,
    userId,
    envFor: ({ url, token }) => ({
      MATRIX_CHRONOS_URL: url,
      MATRIX_CHRONOS_TOKEN: token,
      MATRIX_USER_ID: userId,
      MATRIX_EXECUTOR_KEYFILE: keyFile,
    }),
    remove: () => rmSync(folder, { recursive: true }),
  };
}
