/** The step at which an executor is killed: around the storing of an envelope, or around a call of a tool. */
import type { ReceiptKind } from '../../../../src/wire/intent-receipt.ts';

export type KillPoint =
  /** Before it is on disk; right after. */
  (
    | { readonly at: 'signing' | 'stored'; readonly kind: ReceiptKind }
    /** Before the call is sent; after it is sent; after its answer came. */
    | { readonly at: 'calling' | 'sent' | 'answered'; readonly tool: string }
  ) & {
    /** At the first transfer that comes there; otherwise some have passed it. */
    readonly first?: boolean;
  };

const STEPS = [
  ...(['intent.accepted', 'intent.compiled', 'call.decided', 'call.tried', 'gate.asked', 'gate.answered'] as const),
  ...(['call.started', 'call.finished', 'call.read_back', 'intent.completed'] as const),
] as const;

const around = (kind: ReceiptKind): KillPoint[] => (['signing', 'stored'] as const).map((at) => ({ at, kind }));
const duringCall = (tool: string): KillPoint[] =>
  (['calling', 'sent', 'answered'] as const).map((at) => ({ at, tool }));

/** Leaves calls behind whose outcome must be looked up, for the points that come only then. */
const LOST: KillPoint = { at: 'calling', tool: 'ledger/transfer', first: true };
const afterLoss = [...duringCall('status'), ...around('call.reconciled')];

/** Every step of a transfer, in approximate order. */
export const KILL_POINTS: readonly KillPoint[] = [
  ...STEPS.flatMap(around),
  ...['simulate', 'transfer', 'accounts'].flatMap(duringCall),
  ...afterLoss.flatMap((point) => [LOST, { ...point, first: true }]),
];

export const nameOf = (point: KillPoint) => `${point.at} ${'kind' in point ? point.kind : point.tool}`;
