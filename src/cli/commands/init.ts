/** `reveille init`: writes the configuration of a fleet, with which its daemons start. */
import { existsSync } from 'node:fs';
import { parseChronosConfig } from '../../chronos/config.ts';
import { parseExecutorConfig } from '../../executor/config.ts';
import { replacePrivateFile, shellWord, writePrivateFile } from '../../kit/identity/private-file.ts';
import { randomSecret } from '../../kit/identity/secrets.ts';
import { parseRouterConfig } from '../../router/config.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import type { CliContext } from '../context.ts';
import { UsageError } from '../flags/usage-error.ts';
import { makeHome } from '../home/home.ts';

export type InitFlags = { postgres?: string; force?: boolean };

/** A setting with the comment above it; `off` is written as a comment that the operator can enable. */
type Entry = { name: string; value: string; about: string; off?: true };
type Section = { title: string; entries: readonly Entry[] };

function sectionsOf(postgres: string): readonly Section[] {
  const [transport, wake] = [randomSecret(), randomSecret()];
  const on = (name: string, value: string, about: string): Entry => ({ name, value, about });
  const secret = (name: string, about: string): Entry => on(name, randomSecret(), about);
  const off = (name: string, value: string, about: string): Entry => ({ name, value, about, off: true });
  return [
    {
      title: 'chronosd: stores alarms. All replicas have the same values.',
      entries: [
        on('CHRONOS_POSTGRES_URI', postgres, 'The database. The address may name several hosts.'),
        on('CHRONOS_ENROLLMENT', 'required', 'chronosd accepts only keys that "reveille agent enroll" registered.'),
        on('CHRONOS_TOKEN', transport, 'The bearer of every agent and client of chronosd.'),
        secret('CHRONOS_AGENT_AUTH_SECRET', 'Signs the tokens that agents get for a proof of identity.'),
        secret('CHRONOS_ADMIN_TOKEN', 'The bearer of the operator: enrolls and revokes agents.'),
        on('CHRONOS_WAKE_TOKEN', wake, 'The bearer of wakes, from chronosd to the router.'),
        off('CHRONOS_ROUTER_WAKE_URL', 'http://127.0.0.1:8088/internal/wake', 'The router, on another host.'),
        off(
          'CHRONOS_HOST',
          '0.0.0.0',
          'The address to listen on; beyond loopback it needs one of the next two settings.',
        ),
        off('CHRONOS_TLS_CERT', '/etc/reveille/chronosd.pem', 'The certificate; CHRONOS_TLS_KEY is its key.'),
        off('CHRONOS_TLS', 'terminated-in-front', 'Instead of a certificate, behind a TLS proxy.'),
        off('CHRONOS_METRICS_TOKEN', randomSecret(), 'Allows scrapers on other hosts to read /metrics.'),
      ],
    },
    {
      title: 'router: starts machines and delivers wakes.',
      entries: [
        on('ROUTER_WAKE_TOKEN', wake, 'The same as CHRONOS_WAKE_TOKEN.'),
        secret('ROUTER_ADMIN_TOKEN', 'The bearer of the operator: machines and users.'),
        on('ROUTER_CHRONOS_URL', 'http://127.0.0.1:9096', 'chronosd, for turn reports.'),
        off('ROUTER_HOST', '0.0.0.0', 'The address to listen on; it needs ROUTER_TLS_CERT or ROUTER_TLS.'),
        off(
          'ROUTER_PUBLIC_HOST',
          '0.0.0.0',
          'The address for users; it needs ROUTER_PUBLIC_TLS_CERT or ROUTER_PUBLIC_TLS.',
        ),
        off('ROUTER_CONSOLE', '1', 'Serves the console to users; it needs the next setting.'),
        off('ROUTER_CHRONOS_TOKEN', transport, 'The same as CHRONOS_TOKEN, for the console.'),
      ],
    },
    {
      title: 'executor: executes irreversible calls after an approval.',
      entries: [
        secret('EXECUTOR_TOKEN', 'The bearer of the operator, for the intents of every user.'),
        secret('EXECUTOR_ADMIN_TOKEN', 'The bearer of the operator, for approvers and submitters.'),
        off('EXECUTOR_HOST', '0.0.0.0', 'The address to listen on; it needs EXECUTOR_TLS_CERT or EXECUTOR_TLS.'),
        off('EXECUTOR_CHRONOS_URL', 'http://127.0.0.1:9096', 'chronosd, to wake agents that wait for an intent.'),
        off('EXECUTOR_CHRONOS_TOKEN', transport, 'The same as CHRONOS_TOKEN.'),
      ],
    },
  ];
}

/** Quoted YAML: a secret or an address is never read as a number, comment or anchor. */
const quoted = (value: string) => JSON.stringify(value);

function textOf(sections: readonly Section[], now: string): string {
  const lines = [
    `# Configuration of a Reveille fleet, created by "reveille init" at ${now}.`,
    '# "reveille chronosd", "reveille router", "reveille executor" and the operator\'s commands read it from REVEILLE_HOME.',
    '# Environment variables have precedence over this file. All settings: reveille docs settings',
    '# This file contains secrets. Copy it to the hosts of the daemons, with mode 0600, and to no agent.',
  ];
  for (const { title, entries } of sections) {
    lines.push('', `# --- ${title}`);
    for (const { name, value, about, off } of entries)
      lines.push('', `# ${about}`, `${off ? '# ' : ''}${name}: ${quoted(value)}`);
  }
  return `${lines.join('\n')}\n`;
}

/**
 * Writes `config.yaml` of this home, after the parsers of all three daemons have accepted it.
 *
 * @throws ReveilleError `conflict` for an existing file without `--force`, `invalid_request` for a wrong address
 */
export async function init(context: CliContext, { postgres, force = false }: InitFlags): Promise<void> {
  const { home, out, clock } = context;
  if (postgres === undefined)
    throw new UsageError(
      '--postgres is missing; for example: reveille init --postgres postgres://chronos@db.internal/chronos',
    );
  const sections = sectionsOf(postgres);
  const active = sections.flatMap(({ entries }) => entries.filter(({ off }) => off === undefined));
  const { CHRONOS_DATA_DIR, ROUTER_DATA_DIR, EXECUTOR_DATA_DIR, REVEILLE_HOME } = context.settings;
  const settings = {
    ...{ CHRONOS_DATA_DIR, ROUTER_DATA_DIR, EXECUTOR_DATA_DIR, REVEILLE_HOME },
    ...Object.fromEntries(active.map(({ name, value }) => [name, value])),
  };
  parseChronosConfig(settings);
  parseRouterConfig(settings);
  parseExecutorConfig(settings);
  makeHome(home);
  const file = home.configFile;
  if (existsSync(home.secretsFile))
    throw new ReveilleError(
      'conflict',
      `${home.path} is the home of a "reveille up" with its own secrets; set REVEILLE_HOME to another folder for the fleet`,
    );
  const text = textOf(sections, formatInstant(clock.now()));
  if (!force && existsSync(file))
    throw new ReveilleError(
      'conflict',
      `${file} exists and was not changed; --force replaces it with new secrets, which all daemons and agents then need`,
    );
  if (force) replacePrivateFile(file, text);
  else writePrivateFile(file, text);
  const enroll = 'reveille agent enroll --from agents.jsonl --output agents';
  out.result({ file, settings: active.map(({ name }) => name) }, [
    `Wrote ${file}, readable only by you: ${active.length} settings, secrets included.`,
    `  start   reveille chronosd, reveille router, reveille executor`,
    `  enrol   ${enroll}`,
    `  more    ${shellWord(file)} has further settings as comments`,
  ]);
}
