/** `reveille up` as a separate process with a scripted model, and its console. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { homeAt, type RunRecord, readRun } from '../../../src/cli/home/home.ts';
import { modelEndpoint, type Script } from '../../../src/kit/model/testing/model-endpoint.ts';
import { START_LIMIT_MS } from '../../support/cluster/processes.ts';
import { reveille, startReveille } from '../../support/command-line.ts';
import { eventually } from '../../support/eventually.ts';
import { atEnd, type Owner, temporaryFolder } from '../../support/temporary.ts';

/** A virtual authenticator that confirms presence and identity. */
export const AUTHENTICATOR = {
  ...({ protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true } as const),
  ...{ isUserVerified: true, automaticPresenceSimulation: true },
};

/** Milliseconds after which a new question can be answered. */
export const SEEN_MS = 900;

export type Installation = {
  readonly home: string;
  readonly run: RunRecord;
  /** Runs a command of this installation. It must succeed. */
  reveille(...args: string[]): Promise<string>;
  /** The same with standard input. */
  given(input: string, ...args: string[]): Promise<string>;
  /** An address that opens the console, once. */
  address(): Promise<string>;
};

export async function startInstallation(
  owner: Owner,
  script: Script,
  more: Record<string, string> = {},
): Promise<Installation> {
  const folder = temporaryFolder(owner);
  const model = await modelEndpoint(owner, script);
  const env = {
    ...{ CHRONOS_PORT: '0', ROUTER_PORT: '0', ROUTER_PUBLIC_PORT: '0', EXECUTOR_PORT: '0' },
    ...{ REVEILLE_APPROVER_DIR: join(folder, 'approver'), REVEILLE_APPROVER_STORE: 'file' },
    ...{ NEO_MODEL: 'agent', NEO_MODEL_BASE_URL: model.baseUrl, NEO_CHEAP_MODEL: 'none' },
    ...{ EXECUTOR_MODEL: 'compiler', EXECUTOR_MODEL_BASE_URL: model.baseUrl },
    ...more,
  };
  const up = startReveille(owner, folder, ['up'], { env });
  atEnd(owner, () => up.end('SIGTERM'));
  const home = homeAt(folder);
  await eventually(
    'up is running',
    () => {
      if (up.outcome.status !== null) throw new Error(`it ended: ${up.outcome.stderr}`);
      return existsSync(home.runFile);
    },
    START_LIMIT_MS,
  );
  const run = readRun(home)!;
  const installation: Installation = {
    home: folder,
    run,
    reveille: (...args) => installation.given('', ...args),
    async given(input, ...args) {
      const { status, stdout, stderr } = await reveille(folder, args, { env, input });
      if (status !== 0) throw new Error(`reveille ${args.join(' ')} ended with ${status}: ${stderr}`);
      return stdout;
    },
    address: async () => (await installation.reveille('open', '--print')).trim(),
  };
  return installation;
}
