/**
 * `npm run terminal-picture`: draws `docs/console/terminal.svg`, the output of a first `reveille up`.
 *
 * The output is real, with three changes: random ports become the default ones, the folder of the checkout becomes
 * `~/reveille`, and optional parts that this machine lacks are omitted, except the model.
 */
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sharedOwner, temporaryFolder } from '../../support/temporary.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const PICTURE = join(ROOT, 'docs', 'console', 'terminal.svg');
const PORTS: Readonly<Record<string, string>> = { chronosd: '9096', router: '8088', executor: '8081' };
const CONSOLE_PORT = '8087';
/** Milliseconds until the turn of the welcome alarm has ended: the alarm is due after five seconds. */
const UNTIL_REPLY = 15_000;

const COLUMNS = 100;
const CHARACTER = 7.8;
const LINE = 19;
const MARGIN = 18;

async function firstStart(home: string): Promise<string> {
  const env = {
    ...{ PATH: process.env.PATH, HOME: home, REVEILLE_APPROVER_STORE: 'file', COLUMNS: String(COLUMNS) },
    ...{ CHRONOS_PORT: '0', ROUTER_PORT: '0', ROUTER_PUBLIC_PORT: '0', EXECUTOR_PORT: '0' },
  };
  const child = spawn(process.execPath, [join(ROOT, 'bin', 'reveille.mjs'), 'up'], { env });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  setTimeout(() => child.kill('SIGTERM'), UNTIL_REPLY);
  await new Promise((resolve) => child.once('close', resolve));
  return output;
}

function shownLines(output: string): string[] {
  return output
    .split('\n')
    .filter((line) => !/^Stopping/.test(line) && !/^ {2}disabled +(?!model)\S/.test(line))
    .map((line) => line.replaceAll(ROOT, '~/reveille'))
    .map((line) => {
      const part = /^ {2}(\w+) /.exec(line)?.[1];
      const port = PORTS[part ?? ''] ?? CONSOLE_PORT;
      return line.replace(/(http:\/\/[\w.]+:)\d+( *)/, (_, start: string, gap: string) =>
        part !== undefined && part in PORTS ? `${start}${port}`.padEnd(25) : `${start}${port}${gap}`,
      );
    })
    .join('\n')
    .trimEnd()
    .split('\n');
}

const escaped = (text: string) => text.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`);
const cut = (line: string) => (line.length > COLUMNS ? `${line.slice(0, COLUMNS - 1)}…` : line);

function colourOf(line: string): string {
  if (line.startsWith('$')) return '#8bd5a0';
  if (line.startsWith('Reveille')) return '#ffffff';
  return line.includes('│') ? '#9ecbff' : '#d0d7de';
}

function drawn(lines: readonly string[]): string {
  const width = Math.ceil(COLUMNS * CHARACTER) + 2 * MARGIN;
  const height = lines.length * LINE + 2 * MARGIN;
  const rows = lines.map(
    (line, row) =>
      `<text x="${MARGIN}" y="${MARGIN + 14 + row * LINE}" fill="${colourOf(line)}" xml:space="preserve">${escaped(cut(line))}</text>`,
  );
  const font = `font-family="ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="13"`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" ${font} role="img">`,
    `<title>The output of a first "npm start"</title>`,
    `<rect width="${width}" height="${height}" rx="8" fill="#161b22"/>`,
    ...rows,
    '</svg>\n',
  ].join('\n');
}

const owner = sharedOwner();
try {
  const lines = shownLines(await firstStart(temporaryFolder(owner)));
  writeFileSync(PICTURE, drawn(['$ npm ci && npm start', ...lines]));
  console.log(`docs/console/terminal.svg: ${lines.length} lines`);
} finally {
  await owner.end();
}
