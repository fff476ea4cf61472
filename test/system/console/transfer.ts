/** A plan that is asked about: play money that moves. */
export const TRANSFER = {
  verb: 'transfer',
  plan: {
    ...{ id: 'pay', kind: 'call', tool: 'ledger/transfer' },
    args: { from: 'alice', to: 'bob', amount: '25.00', currency: 'EUR' },
  },
};
