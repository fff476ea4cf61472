/** The graph of imports between files, its circles, and the drawing of it by part of the system. */
import { globSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { isOfTests, specifiersIn } from './import-rules.ts';

/** For each file, the files that it imports; type imports count. Paths are relative to the root. */
export type ImportGraph = ReadonlyMap<string, readonly string[]>;

/** Reads the imports between the TypeScript files of some folders; tests are left out unless asked for. */
export function importGraph(root: string, folders: readonly string[], withTests = false): ImportGraph {
  const realRoot = realpathSync(root);
  const pathOf = (file: string) => relative(realRoot, file).split(sep).join('/');
  const files = folders
    .flatMap((folder) =>
      globSync(`${folder}/**/*.ts`, { cwd: realRoot, exclude: (path) => path.includes('node_modules') }),
    )
    .map((name) => pathOf(realpathSync(join(realRoot, name))))
    .filter((file) => withTests || !isOfTests(file));
  const known = new Set(files.sort());
  return new Map(
    [...known].map((file) => {
      const path = join(realRoot, file);
      const targets = specifiersIn(readFileSync(path, 'utf8'))
        .filter(({ specifier }) => specifier.startsWith('.'))
        .map(({ specifier }) => pathOf(resolve(dirname(path), specifier)));
      return [file, [...new Set(targets)].filter((target) => known.has(target))];
    }),
  );
}

/**
 * The circles of a graph, each as one shortest path back to its first file.
 *
 * Tarjan's strongly connected components (1972), without recursion: time is linear in files and imports.
 */
export function circlesOf(graph: ImportGraph): string[][] {
  return componentsOf(graph)
    .filter((component) => component.length > 1 || graph.get(component[0]!)!.includes(component[0]!))
    .map((component) => circleIn(graph, component))
    .sort((one, other) => (one[0]! < other[0]! ? -1 : 1));
}

function componentsOf(graph: ImportGraph): string[][] {
  const order = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const onStack = new Set<string>();
  const components: string[][] = [];
  const enter = (file: string) => {
    order.set(file, order.size);
    low.set(file, order.get(file)!);
    stack.push(file);
    onStack.add(file);
    return { file, next: 0 };
  };
  for (const start of graph.keys()) {
    if (order.has(start)) continue;
    const path = [enter(start)];
    while (path.length > 0) {
      const step = path.at(-1)!;
      const target = graph.get(step.file)![step.next++];
      if (target === undefined) {
        path.pop();
        const parent = path.at(-1)?.file;
        if (parent) low.set(parent, Math.min(low.get(parent)!, low.get(step.file)!));
        if (low.get(step.file) !== order.get(step.file)) continue;
        const component = stack.splice(stack.lastIndexOf(step.file));
        for (const file of component) onStack.delete(file);
        components.push(component);
      } else if (!order.has(target)) {
        path.push(enter(target));
      } else if (onStack.has(target)) {
        low.set(step.file, Math.min(low.get(step.file)!, order.get(target)!));
      }
    }
  }
  return components;
}

/** A breadth-first search from the first file of a component back to it. */
function circleIn(graph: ImportGraph, component: readonly string[]): string[] {
  const inside = new Set(component);
  const start = [...component].sort()[0]!;
  const cameFrom = new Map<string, string>();
  const queue = [start];
  for (const file of queue) {
    for (const target of graph.get(file)!) {
      if (target === start) {
        const back = [start];
        for (let at = file; at !== start; at = cameFrom.get(at)!) back.unshift(at);
        return [start, ...back];
      }
      if (inside.has(target) && !cameFrom.has(target)) {
        cameFrom.set(target, file);
        queue.push(target);
      }
    }
  }
  return [];
}

/** The layers of ARCHITECTURE.md from the lowest to the highest; a part that is not listed is a system. */
const LAYERS = ['wire', 'kit', 'clients', 'systems', 'console', 'cli', 'exports'] as const;
type Layer = (typeof LAYERS)[number];

/** A part of `src`: a kit, a system without its client, a client with the files that it needs, or another folder. */
export type Part = { readonly name: string; readonly layer: Layer };

/** @param graph of `src`, with paths that begin with `src/` */
function partsOf(graph: ImportGraph): (file: string) => Part {
  const isOfClient = new Set(
    [...graph.keys()].filter((file) => file === `src/${folderOf(file)}/client.ts` && isSystem(file)),
  );
  for (const file of isOfClient)
    for (const target of graph.get(file)!) if (folderOf(target) === folderOf(file)) isOfClient.add(target);
  return (file) => {
    const folder = folderOf(file);
    if (isOfClient.has(file)) return { name: `${folder}/client`, layer: 'clients' };
    if (folder === 'kit') return { name: file.split('/').slice(1, 3).join('/'), layer: 'kit' };
    return { name: folder, layer: LAYERS.find((layer) => layer === folder) ?? 'systems' };
  };
}

/** The agent daemon is a system inside the folder of the agents. */
const folderOf = (file: string) => /^src\/(agents\/neo|[^/]+)/.exec(file)![1]!;
const isSystem = (file: string) => !LAYERS.some((layer) => layer === folderOf(file));

/** The imports between the parts, and for each part its layer. */
function importsOfParts(graph: ImportGraph) {
  const partOf = partsOf(graph);
  const parts = new Map<string, Part>();
  const imports = new Map<string, Set<string>>();
  for (const [file, targets] of graph) {
    const part = partOf(file);
    parts.set(part.name, part);
    const imported = imports.get(part.name) ?? new Set<string>();
    imports.set(part.name, imported);
    for (const { name } of targets.map(partOf)) if (name !== part.name) imported.add(name);
  }
  return { parts, imports: new Map([...imports].map(([name, imported]) => [name, [...imported].sort()])) };
}

/** Circles between the parts, and imports from a lower layer to a higher one. */
export function disorderOf(graph: ImportGraph): string[] {
  const { parts, imports } = importsOfParts(graph);
  const rankOf = (name: string) => LAYERS.indexOf(parts.get(name)!.layer);
  const upwards = [...imports].flatMap(([name, imported]) =>
    imported.filter((target) => rankOf(target) > rankOf(name)).map((target) => `${name} imports ${target}`),
  );
  return [...upwards, ...circlesOf(imports).map((circle) => circle.join(' -> '))];
}

/** The parts by layer with their imports, as a Mermaid flowchart. Imports of kits from above are one arrow. */
export function mermaidOf(graph: ImportGraph): string {
  const { parts, imports } = importsOfParts(graph);
  const idOf = (name: string) => name.replaceAll(/[^a-z]/g, '_');
  const boxes = LAYERS.toReversed().flatMap((layer) => [
    `  subgraph layer_${layer}[${layer}]`,
    ...[...parts.values()].filter((part) => part.layer === layer).map(({ name }) => `    ${idOf(name)}["${name}"]`),
    '  end',
  ]);
  const isKit = (name: string) => parts.get(name)!.layer === 'kit';
  const arrows = [...imports].flatMap(([name, imported]) => {
    const ends = imported.map((target) => (isKit(target) && !isKit(name) ? 'layer_kit' : idOf(target)));
    return [...new Set(ends)].map((end) => `  ${idOf(name)} --> ${end}`);
  });
  return ['flowchart TB', ...boxes, ...arrows, ''].join('\n');
}
