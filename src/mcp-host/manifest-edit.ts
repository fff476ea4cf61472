/**
 * Edits the text of a manifest and keeps everything else as written: order, blanks, untouched fields. Pure; the caller
 * loads the text before it writes it.
 */
import { readJsonWithPositions } from '../kit/json/strict-json.ts';
import type { ManifestServer, ManifestTool } from '../wire/manifest.ts';

type Path = readonly (string | number)[];

/** A text during an edit; it is parsed again after each step. */
class EditedJson {
  #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  get text(): string {
    return this.#text;
  }

  at(path: Path): unknown {
    let value = readJsonWithPositions(this.#text).value;
    for (const key of path) value = (value as Record<string | number, unknown> | undefined)?.[key];
    return value;
  }

  replace(path: Path, value: unknown): void {
    const { from, to } = this.#span(path);
    this.#splice(from, to, this.#render(value, path.length, this.#isFlat(path)));
  }

  append(path: Path, value: unknown): void {
    const list = this.at(path) as readonly unknown[];
    const depth = path.length + 1;
    if (list.length === 0) {
      this.replace(path, [value]);
      return;
    }
    const { to } = this.#span([...path, list.length - 1]);
    const isFlat = this.#isFlat(path);
    this.#splice(to, to, `,${isFlat ? ' ' : this.#line(depth)}${this.#render(value, depth, isFlat)}`);
  }

  /** Adds a field to an object that has at least one. */
  add(path: Path, name: string, value: unknown): void {
    const last = Object.keys(this.at(path) as object).at(-1)!;
    const { to } = this.#span([...path, last]);
    const depth = path.length + 1;
    const isFlat = this.#isFlat(path);
    const gap = isFlat ? ' ' : this.#line(depth);
    this.#splice(to, to, `,${gap}${JSON.stringify(name)}: ${this.#render(value, depth, isFlat)}`);
  }

  remove(path: Path, index: number): void {
    const { length } = this.at(path) as readonly unknown[];
    const own = this.#span([...path, index]);
    if (length === 1) this.replace(path, []);
    else if (index > 0) this.#splice(this.#span([...path, index - 1]).to, own.to, '');
    else this.#splice(own.from, this.#span([...path, 1]).from, '');
  }

  #span(path: Path): { from: number; to: number } {
    const span = readJsonWithPositions(this.#text).spanOf(path);
    if (span === undefined) throw new Error(`there is nothing at ${path.join('.')}`);
    return span;
  }

  #splice(from: number, to: number, text: string): void {
    this.#text = this.#text.slice(0, from) + text + this.#text.slice(to);
  }

  /** Whether the value is on one line and not empty. */
  #isFlat(path: Path): boolean {
    const { from, to } = this.#span(path);
    const written = this.#text.slice(from, to);
    return !this.#text.includes('\n') || (!written.includes('\n') && /^[[{]\s*[^\s\]}]/.test(written));
  }

  get #unit(): string {
    return /\n([ \t]+)"/.exec(this.#text)?.[1] ?? '  ';
  }

  #line(depth: number): string {
    return `${this.#text.includes('\r\n') ? '\r\n' : '\n'}${this.#unit.repeat(depth)}`;
  }

  #render(value: unknown, depth: number, isFlat: boolean): string {
    if (isFlat) return JSON.stringify(value);
    return JSON.stringify(value, null, this.#unit).replaceAll('\n', this.#line(depth));
  }
}

const indexOf = (edited: EditedJson, alias: string) =>
  (edited.at(['servers']) as readonly ManifestServer[]).findIndex((server) => server.alias === alias);

export function withServer(text: string, server: ManifestServer): string {
  const edited = new EditedJson(text);
  edited.append(['servers'], server);
  return edited.text;
}

export function withoutServer(text: string, alias: string): string {
  const edited = new EditedJson(text);
  edited.remove(['servers'], indexOf(edited, alias));
  return edited.text;
}

/** The new entries for a server's tools. Other fields of these tools stay. Tools without an entry are removed. */
export function withTools(text: string, alias: string, entries: readonly ManifestTool[]): string {
  const edited = new EditedJson(text);
  const server: Path = ['servers', indexOf(edited, alias)];
  const path: Path = [...server, 'tools'];
  if (edited.at(path) === undefined) {
    edited.add(server, 'tools', entries);
    return edited.text;
  }
  const tools = () => edited.at(path) as readonly ManifestTool[];
  for (let index = tools().length - 1; index >= 0; index--) {
    if (!entries.some(({ name }) => name === tools()[index]!.name)) edited.remove(path, index);
  }
  for (const entry of entries) {
    const index = tools().findIndex(({ name }) => name === entry.name);
    if (index < 0) {
      edited.append(path, entry);
      continue;
    }
    const before = tools()[index]!;
    const { side_effect_class: _, surface: __, ...rest } = before;
    const isSame = before.surface === entry.surface && before.side_effect_class === entry.side_effect_class;
    // A declared class of an escalated tool is kept: it says what the tool does.
    const kept = entry.side_effect_class ?? before.side_effect_class;
    if (isSame || (before.surface === entry.surface && kept === before.side_effect_class)) continue;
    edited.replace([...path, index], {
      ...rest,
      ...(kept !== undefined && { side_effect_class: kept }),
      surface: entry.surface,
    });
  }
  return edited.text;
}
