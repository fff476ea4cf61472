/** Results of MCP calls as a model is shown them: text and images stay, of anything else it is told what there was. Pure. */
import type { HostAnswer, HostContent } from './host.ts';
import type { ToolAnswer, ToolPart } from './surface.ts';

/** What models take; other pictures are only mentioned. */
const IMAGE_TYPES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);

/** What a part that cannot be shown holds, at most so much of a server's own words. */
const WORDS = 200;

const words = (value: unknown): string => (typeof value === 'string' ? value.slice(0, WORDS).toWellFormed() : '');
const text = (value: string): ToolPart => ({ type: 'text', text: value.toWellFormed() });

function mention(what: string, ...facts: string[]): ToolPart {
  return text(`[${[what, ...facts.filter((fact) => fact !== '')].join(', ')}; not shown]`);
}

/** How many bytes base64 stands for. */
function sizeOf(data: unknown): string {
  if (typeof data !== 'string') return '';
  const padding = /={0,2}$/.exec(data)![0].length;
  return `${Math.max(0, Math.floor((data.length * 3) / 4) - padding)} bytes`;
}

function resourcePart(resource: unknown): ToolPart {
  const members = typeof resource === 'object' && resource !== null ? (resource as Record<string, unknown>) : {};
  if (typeof members.text === 'string') return text(`[resource ${words(members.uri)}]\n${members.text}`);
  return mention(`resource ${words(members.uri)}`, words(members.mimeType), sizeOf(members.blob));
}

function partOf(content: HostContent): ToolPart {
  switch (content.type) {
    case 'text':
      return text(typeof content.text === 'string' ? content.text : '');
    case 'image':
      if (typeof content.data === 'string' && IMAGE_TYPES.has(words(content.mimeType).toLowerCase())) {
        return { type: 'image', mediaType: words(content.mimeType).toLowerCase(), data: content.data };
      }
      return mention('a picture', words(content.mimeType), sizeOf(content.data));
    case 'audio':
      return mention('a sound', words(content.mimeType), sizeOf(content.data));
    case 'resource_link':
      return text(`[resource ${words(content.uri)}${content.name === undefined ? '' : ` (${words(content.name)})`}]`);
    case 'resource':
      return resourcePart(content.resource);
    default:
      return mention(`content of the type ${JSON.stringify(words(content.type))}`);
  }
}

export function answerOf({ content, isError = false }: HostAnswer): ToolAnswer {
  const parts = content.map(partOf);
  // A model takes an empty result for a failure of the program around it.
  if (parts.length === 0)
    parts.push(text(isError ? 'the tool failed and gave no reason' : 'done; the tool said nothing'));
  return { content: parts, isError };
}
