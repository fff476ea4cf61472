/** A plan that needs an approval: a transfer of play money. */
export const TRANSFER = {
  verb: 'transfer',
  plan: {
    ...{ id: 'pay', kind: 'call', tool: 'ledger/transfer' },
    args: { from: 'alice', to: 'bob', amount: '25.00', currency: 'EUR' },
  },
};
