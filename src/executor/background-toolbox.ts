/**
 * A toolbox whose servers start in the background. Meanwhile the executor serves requests: a slow or broken server does
 * not block reading intents, answering questions or reading receipts.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Logger } from '../kit/log/log.ts';
import { bundledManifest } from '../mcp-host/bundled-programs.ts';
import { ReveilleError, thrownText } from '../wire/errors.ts';
import type { ExecutorConfig } from './config.ts';
import type { Toolbox } from './tools/toolbox.ts';

export type BackgroundToolbox = Required<Toolbox> & {
  /** Starts the servers; idempotent. */
  start(): void;
  /** Why there are no tools; `undefined` when there are tools or the servers are still starting. */
  failure(): ReveilleError | undefined;
};

export type BackgroundToolboxOptions = {
  readonly manifest: ExecutorConfig['manifest'];
  /** Starts the servers. */
  readonly open: (signal: AbortSignal) => Promise<Toolbox>;
  readonly log: Logger;
  /** Called when the servers cannot be started. */
  readonly onFailure?: ((error: ReveilleError) => void) | undefined;
};

function digestOfFile(path: string): string {
  try {
    return createHash('sha256').update(readFileSync(path)).digest('hex');
  } catch (cause) {
    const why = thrownText(cause);
    throw new ReveilleError('invalid_request', `EXECUTOR_MANIFEST ${path} cannot be read: ${why}`, { cause });
  }
}

/** @throws ReveilleError `invalid_request` when the manifest cannot be read */
export function backgroundToolbox({ manifest, open, log, onFailure }: BackgroundToolboxOptions): BackgroundToolbox {
  const manifestSha256 = digestOfFile(manifest === 'bundled' ? bundledManifest('executor') : manifest.path);
  const closing = new AbortController();
  const attempted = Promise.withResolvers<void>();
  let starting: Promise<void> | undefined;
  let toolbox: Toolbox | undefined;
  let failure: ReveilleError | undefined;

  const startServers = async () => {
    try {
      const opened = await open(closing.signal);
      if (opened.manifestSha256 !== manifestSha256) {
        await opened.close();
        throw new ReveilleError('conflict', 'the manifest changed while it was being read; restart the executor');
      }
      toolbox = opened;
      for (const warning of opened.warnings()) log.warn(warning);
      log.info({ tools: opened.tools().length }, 'the tools are available');
    } catch (thrown) {
      if (closing.signal.aborted) return;
      const what = 'the servers of the manifest could not be started; the log has the details';
      failure = thrown instanceof ReveilleError ? thrown : new ReveilleError('unavailable', what, { cause: thrown });
      log.error({ err: thrown }, 'the executor has no tools: the servers of its manifest could not be started');
      onFailure?.(failure);
    } finally {
      attempted.resolve();
    }
  };
  const start = () => {
    if (!closing.signal.aborted) starting ??= startServers();
  };
  const absenceText = (name: string) => {
    if (failure) return `the tool ${name} is not available: ${failure.message}`;
    return `the tool ${name} is not available yet: the servers of the manifest are starting`;
  };

  return {
    manifestSha256,
    start,
    failure: () => failure,
    ready() {
      start();
      return attempted.promise;
    },
    tools: () => toolbox?.tools() ?? [],
    find: (name) => toolbox?.find(name),
    absence: (name) => toolbox?.absence(name) ?? absenceText(name),
    async call(name, args, options) {
      return toolbox ? toolbox.call(name, args, options) : { status: 'not_run', message: absenceText(name) };
    },
    warnings: () => toolbox?.warnings() ?? (failure ? [failure.message] : []),
    async close() {
      closing.abort(new Error('the executor is shutting down'));
      await starting;
      attempted.resolve();
      await toolbox?.close();
    },
  };
}
