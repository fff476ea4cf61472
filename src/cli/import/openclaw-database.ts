/** The jobs in OpenClaw's state database, where versions from 2026.6 on keep them: `~/.openclaw/state/openclaw.sqlite`. */
import { statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { ReveilleError, thrownText } from '../../wire/errors.ts';
import { isObject } from '../../wire/json.ts';
import { LARGEST_BYTES } from './source-file.ts';

/**
 * The jobs as text of the former file, so that both are read alike. The database may be in use.
 *
 * @throws ReveilleError that names the file
 */
export function openclawDatabaseText(path: string): string {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined)
    throw new ReveilleError('not_found', `there is no ${path}; name OpenClaw's file or database`);
  try {
    // SQLite would wait for the writer of a pipe.
    if (!found.isFile()) throw new Error('it is no regular file');
    const db = new DatabaseSync(path, { readOnly: true, timeout: 5000 });
    try {
      // A view, a virtual table or a generated column computes rows without an end.
      const stored = db.prepare(
        `SELECT 1 FROM pragma_table_list AS own WHERE own.schema = 'main' AND own.name = 'cron_jobs' AND own.type = 'table'
         AND NOT EXISTS (SELECT 1 FROM pragma_table_xinfo('cron_jobs') WHERE hidden <> 0)`,
      );
      if (stored.get() === undefined) throw new Error('cron_jobs is no table of stored rows');
      const jobs: unknown[] = [];
      let bytes = 0;
      for (const row of db.prepare('SELECT job_json, enabled FROM cron_jobs ORDER BY sort_order, job_id').iterate()) {
        const text = String(row.job_json);
        bytes += text.length;
        if (bytes > LARGEST_BYTES) throw new Error(`its jobs have more than ${LARGEST_BYTES / 1024 / 1024} MiB`);
        jobs.push(jobIn(text, row.enabled));
      }
      return JSON.stringify({ jobs });
    } finally {
      db.close();
    }
  } catch (cause) {
    const problem = `${path} has no jobs of OpenClaw (${thrownText(cause)}); name its database, or the output of "openclaw cron list --all --json"`;
    throw new ReveilleError('invalid_request', problem, { cause });
  }
}

/** One job; a text that is no object is reported as a job that cannot be read. */
function jobIn(text: string, enabled: unknown): unknown {
  try {
    const job: unknown = JSON.parse(text);
    // The column decides.
    return isObject(job) ? { ...job, enabled: enabled !== 0 } : job;
  } catch {
    return text;
  }
}
