/**
 * `npm run release:check -- v1.2.3` decides whether a tag may become a release. Tag and `package.json` name one version.
 * `CHANGELOG.md` has it as its latest, with a date. Its number follows semantic versioning (https://semver.org; below
 * 1.0.0 the second number counts as the first). With `--notes` it prints the notes of the release instead.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, readManifest } from './manifest.ts';

type Version = readonly [major: number, minor: number, patch: number];
type Section = { readonly version: string; readonly dated: boolean; readonly text: string };

const HEADING = /^## \[?(\d+\.\d+\.\d+)\]?(?: - (\d{4}-\d{2}-\d{2}))?$/;

/** The released versions of a changelog, latest first. */
function sectionsOf(changelog: string): Section[] {
  return changelog.split(/^(?=## )/m).flatMap((text) => {
    const [, version, date] = HEADING.exec(text.split('\n', 1)[0]!.trim()) ?? [];
    return version === undefined ? [] : [{ version, dated: date !== undefined, text }];
  });
}

const numbersOf = (version: string) => version.split('.').map(Number) as unknown as Version;

/** The part of a number that increased: 0, 1 or 2; `undefined` without an increase. */
function raised(from: Version, to: Version): number | undefined {
  const part = to.findIndex((number, at) => number !== from[at]);
  return part >= 0 && to[part]! > from[part]! && to.slice(part + 1).every((number) => number === 0) ? part : undefined;
}

/**
 * @param tag as in `v1.2.3`
 * @param version of `package.json`
 * @returns the reasons against the release, one sentence each
 */
export function releaseProblems(tag: string, version: string, changelog: string): string[] {
  const problems = tag === `v${version}` ? [] : [`the tag is ${tag} and package.json says ${version}`];
  const [latest, before] = sectionsOf(changelog);
  if (latest?.version !== version)
    return [...problems, `the latest version in CHANGELOG.md must be ${version} (it is ${latest?.version ?? 'none'})`];
  if (!latest.dated) problems.push(`CHANGELOG.md must say when: ## ${version} - YYYY-MM-DD`);
  if (before === undefined) return problems;
  const to = numbersOf(version);
  const part = raised(numbersOf(before.version), to);
  if (part === undefined) return [...problems, `${version} does not follow ${before.version}`];
  const breaking = to[0] === 0 ? 1 : 0;
  if (/^### Breaking$/m.test(latest.text) && part > breaking)
    problems.push(`CHANGELOG.md lists breaking changes of ${version}, but its number says that it breaks nothing`);
  if (/^### (?:Added|Removed|Deprecated)$/m.test(latest.text) && part === 2 && to[0] > 0)
    problems.push(`CHANGELOG.md lists additions or removals of ${version}, but its number allows only fixes`);
  return problems;
}

/**
 * The section of a version without its heading. Links to pages of the repository name the tag, because a release is
 * shown elsewhere.
 *
 * @param address of the repository, such as `https://github.com/some-body/clock`
 * @throws Error when the changelog does not have the version
 */
export function releaseNotes(version: string, changelog: string, address: string | undefined): string {
  const section = sectionsOf(changelog).find((one) => one.version === version);
  if (section === undefined) throw new Error(`CHANGELOG.md does not have ${version}`);
  const notes = section.text.slice(section.text.indexOf('\n')).trim();
  if (address === undefined) return `${notes}\n`;
  return `${notes.replaceAll(/\]\((?![a-z]+:|#)([^)]+)\)/g, `](${address}/blob/v${version}/$1)`)}\n`;
}

if (import.meta.main) {
  const changelog = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8');
  if (process.argv.includes('--notes')) {
    const address = process.env.REVEILLE_REPOSITORY?.replace(/^git\+|\.git$/g, '');
    process.stdout.write(releaseNotes(readManifest(ROOT).version, changelog, address || undefined));
    process.exit();
  }
  const problems = releaseProblems(process.argv[2] ?? '(none)', readManifest(ROOT).version, changelog);
  for (const problem of problems) console.error(problem);
  process.exitCode = problems.length === 0 ? 0 : 1;
}
