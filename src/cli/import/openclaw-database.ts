/** The jobs in OpenClaw's state database, where versions from 2026.6 on keep them: `~/.openclaw/state/openclaw.sqlite`. */
import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { ReveilleError, thrownText } from '../../wire/errors.ts';

/**
 * The jobs as text of the former file, so that both are read alike. The database may be in use.
 *
 * @throws ReveilleError that names the file
 */
export function openclawDatabaseText(path: string): string {
  if (!existsSync(path)) throw new ReveilleError('not_found', `there is no ${path}; name OpenClaw's file or database`);
  try {
    const db = new DatabaseSync(path, { readOnly: true, timeout: 5000 });
    try {
      const rows = db.prepare('SELECT job_json, enabled FROM cron_jobs ORDER BY sort_order, job_id').all();
      const jobs = rows.map(({ job_json, enabled }) => {
        const job = JSON.parse(String(job_json)) as Record<string, unknown>;
        // The column decides.
        return { ...job, enabled: enabled !== 0 };
      });
      return JSON.stringify({ jobs });
    } finally {
      db.close();
    }
  } catch (cause) {
    const problem = `${path} has no jobs of OpenClaw (${thrownText(cause)}); name its database, or the output of "openclaw cron list --all --json"`;
    throw new ReveilleError('invalid_request', problem, { cause });
  }
}
