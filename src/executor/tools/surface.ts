/** Which tools of the executor's need a person's word. Pure. */
import { classify } from '../../mcp-host/classify.ts';
import type { SideEffectClass, ToolSurface } from '../../wire/manifest.ts';

export type Classified = {
  /** The tool's own name on its server. */
  readonly name: string;
  readonly surface?: ToolSurface | undefined;
  readonly sideEffectClass?: SideEffectClass | undefined;
  readonly annotations?: Readonly<Record<string, unknown>> | undefined;
};

/**
 * The manifest's word goes first. Where it says nothing of the surface, the executor asks in doubt, other than Neo: it holds the
 * tools that Neo must not have. Only a declared read whose name and hints speak of nothing else goes without.
 *
 * @param patterns parts of names that escalate
 */
export function surfaceOf(
  { name, surface, sideEffectClass, annotations }: Classified,
  patterns: readonly string[],
): ToolSurface {
  if (surface !== undefined) return surface;
  if (sideEffectClass !== 'read') return 'escalate';
  return classify({ name, annotations }, patterns).surface;
}
