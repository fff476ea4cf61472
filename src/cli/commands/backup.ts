/** `reveille backup` and `reveille restore`: the whole installation in one encrypted file. */
import { existsSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { VERSION } from '../../wire/version.ts';
import { approverLocation, knownApprover } from '../approver/approver-key.ts';
import { passphraseFrom } from '../approver/passphrase.ts';
import { checkPassphrase } from '../approver/sealing.ts';
import type { About, End } from '../backup/archive.ts';
import type { OmittedLink } from '../backup/inventory.ts';
import { makeBackup } from '../backup/make.ts';
import { checkBackup, type Restored, restoreBackup } from '../backup/restore.ts';
import type { CliContext } from '../context.ts';
import { UsageError } from '../flags/usage-error.ts';
import { DATA_FOLDERS } from '../home/databases.ts';
import { homeAt } from '../home/home.ts';

export type BackupFlags = { check?: string; withApproverKey?: boolean };
export type RestoreFlags = { home?: string; check?: boolean; withApproverKey?: boolean; skipOutsideLinks?: boolean };

const PASSPHRASE = {
  variable: 'REVEILLE_BACKUP_PASSPHRASE_FILE',
  why: 'a backup is sealed with a passphrase',
} as const;

const POSTGRES_REMARK =
  'The alarms are in PostgreSQL and not in this file: back up that database with its own tools (pg_dump, or a base backup with its log), at about the same time';

const MIB = 1024 * 1024;
const inMib = (bytes: number) =>
  bytes < MIB / 10 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / MIB).toFixed(1)} MiB`;

const askPassphrase = (context: CliContext) => passphraseFrom(context, 'Passphrase of the backup', false, PASSPHRASE);

/** @returns a passphrase that is strong enough, before the long work starts */
async function newPassphrase(context: CliContext): Promise<string> {
  const passphrase = await passphraseFrom(context, 'Passphrase for the backup', true, PASSPHRASE)();
  checkPassphrase(passphrase);
  return passphrase;
}

/** The file of the approver's key. @throws ReveilleError when the key is not in a file */
function approverFile({ environment }: CliContext): string {
  const known = knownApprover(environment);
  if (known === undefined)
    throw new UsageError(`--with-approver-key: no approver's key is at ${approverLocation(environment).file}`);
  if (known.kept === 'file' || known.kept === 'sealed file') return known.file;
  throw new ReveilleError(
    'conflict',
    `the approver's key is in the ${known.kept} of this system, which a backup cannot read; seal it into its file first: reveille approver seal`,
  );
}

/** `reveille-2026-11-23T0411Z.backup` in the current folder. */
function usualName({ clock, process }: CliContext): string {
  const [date, time] = formatInstant(clock.now()).split('T');
  return resolve(process.cwd(), `reveille-${date}T${time!.slice(0, 5).replace(':', '')}Z.backup`);
}

const isBelow = (folder: string, file: string) => !/^\.\.(?:[/\\]|$)|^[/\\]|^[a-z]:/i.test(relative(folder, file));

function record(about: About, { parts, bytes, sha256 }: End) {
  return { ...about, parts, part_bytes: bytes, sha256 };
}

const NAMED = 5;
const firstOf = (names: readonly string[]) =>
  [...names.slice(0, NAMED), ...(names.length > NAMED ? ['…'] : [])].join(', ');

/** @param approver what happened to the approver's key */
function contentLines(about: About, { parts, bytes }: End, approver?: string): string[] {
  const cut = {
    instant: 'as of one instant',
    ordered: 'fixed within milliseconds of each other, during writes',
  }[about.cut];
  return [
    `  holds      ${parts} files, ${inMib(bytes)} unpacked; ${Object.keys(about.schemas).length} databases, ${cut}`,
    `  made       ${about.made_at} by Reveille ${about.reveille}`,
    ...(approver === undefined ? [] : [`  approver   ${approver}`]),
  ];
}

export async function backup(context: CliContext, flags: BackupFlags, name: string | undefined): Promise<void> {
  const { home, settings, out, clock } = context;
  if (flags.check !== undefined) {
    if (name !== undefined) throw new UsageError('--check names the file; omit the other one');
    return check(context, flags.check);
  }
  const file = name === undefined ? usualName(context) : resolve(context.process.cwd(), name);
  if (!existsSync(home.secretsFile) && !existsSync(home.keyFile))
    throw new ReveilleError('not_found', `there is no installation in ${home.path}; name one with REVEILLE_HOME`);
  const inside = [home.path, ...[...DATA_FOLDERS.keys()].map((variable) => settings[variable]!)];
  if (inside.some((folder) => isBelow(resolve(folder), file)))
    throw new UsageError(`${file} is inside the home that is backed up; name a file elsewhere, best on another disk`);
  if (existsSync(file)) throw new ReveilleError('conflict', `${file} exists and is not overwritten; name another file`);
  const approver = flags.withApproverKey ? approverFile(context) : undefined;
  const alarms = settings.CHRONOS_POSTGRES_URI ? 'postgresql' : 'file';
  const passphrase = await newPassphrase(context);
  const about = { reveille: VERSION, made_at: formatInstant(clock.now()), alarms } as const;
  const onProgress = (bytes: number) => out.progress(`  ${inMib(bytes)} written`);
  const omitted: OmittedLink[] = [];
  const onOmittedLink = (link: OmittedLink) => void omitted.push(link);
  const made = await makeBackup({ home, settings, file, passphrase, about, approver, onProgress, onOmittedLink });
  out.result({ file, bytes: made.bytes, ...record(made.about, made.end), omitted_links: omitted }, [
    `Backed up ${home.path} to ${file} (${inMib(made.bytes)}, sealed)`,
    ...contentLines(made.about, made.end, approver && `${approver} is included`),
    `Keep the passphrase in another place: without it the file cannot be read.`,
  ]);
  if (omitted.length > 0)
    out.remark(
      `Omitted ${omitted.length} symbolic links that point outside the home: ${firstOf(omitted.map(({ path, target }) => `${path} to ${target}`))}`,
    );
  if (alarms === 'postgresql') out.remark(POSTGRES_REMARK);
}

async function check(context: CliContext, name: string): Promise<void> {
  const file = resolve(context.process.cwd(), name);
  const { about, end, parts } = await checkBackup(file, askPassphrase(context));
  context.out.result({ file, ...record(about, end), files: parts }, [
    `${file} is complete: every part matches its checksum`,
    ...contentLines(about, end),
  ]);
  if (about.alarms === 'postgresql') context.out.remark(POSTGRES_REMARK);
}

function approverText(key: Restored['approver'], file: string | undefined): string | undefined {
  if (key === 'restored') return `restored to ${file}`;
  return key === 'same' ? `${file} has this key already` : undefined;
}

export async function restore(context: CliContext, flags: RestoreFlags, name: string): Promise<void> {
  if (flags.check) return check(context, name);
  const { out, environment } = context;
  const home = context.home.path;
  const file = resolve(context.process.cwd(), name);
  const approver = flags.withApproverKey ? approverLocation(environment).file : undefined;
  const skipped: string[] = [];
  const onOutsideLink = flags.skipOutsideLinks ? (path: string) => void skipped.push(path) : undefined;
  const restored = await restoreBackup({
    ...{ file, home, approver, onOutsideLink },
    passphrase: askPassphrase(context),
  });
  const { about, end, folderLines, approver: key } = restored;
  out.result(
    { home, file, ...record(about, end), approver_key: key, folder_lines: folderLines, skipped_links: skipped },
    [`Restored ${file} to ${home}`, ...contentLines(about, end, approverText(key, approver))],
  );
  out.remark(
    `This home has the alarms, keys and name of the original: start it only when the original is off and stays off. If both run, every alarm fires twice`,
  );
  if (context.home.path !== homeAt(undefined).path) out.remark(`Start it with: REVEILLE_HOME=${home} reveille up`);
  for (const line of folderLines) out.remark(`config.yaml: "${line}" is now a comment; its data is in ${home}`);
  for (const variable of DATA_FOLDERS.keys())
    if (environment[variable])
      out.remark(`${variable} is set to ${environment[variable]}: unset it, or the restored data is not used`);
  if (skipped.length > 0)
    out.remark(`Skipped ${skipped.length} symbolic links that point outside the home: ${firstOf(skipped)}`);
  if (about.alarms === 'postgresql') out.remark(POSTGRES_REMARK);
  if (key === 'left out')
    out.remark("The backup also has an approver's key, which was not restored; restore it with --with-approver-key");
  if (key === 'kept another')
    out.remark(`The approver's key was not restored: ${approver} has another one, which is not overwritten`);
}
