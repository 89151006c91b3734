import fc from 'fast-check'

/** One of the seeds with a few of its bytes changed, cut out or doubled: close enough to get deep into a parser. */
export function changedBytes(seeds: readonly Buffer[]): fc.Arbitrary<Buffer> {
  const place = fc.nat(0xffff)
  const change = fc.oneof(
    fc.record({
      kind: fc.constant('set' as const),
      place,
      byte: fc.oneof(fc.nat(255), fc.constantFrom(0, 1, 0xff)),
    }),
    fc.record({
      kind: fc.constantFrom('cut' as const, 'double' as const),
      place,
      length: fc.integer({ min: 1, max: 9 }),
    }),
  )
  return fc
    .tuple(fc.constantFrom(...seeds), fc.array(change, { minLength: 1, maxLength: 4 }))
    .map(([seed, changes]) => {
      let bytes = Buffer.from(seed)
      for (const change of changes) {
        const at = change.place % Math.max(1, bytes.length)
        if (change.kind === 'set') bytes[at] = change.byte
        else {
          const upTo = bytes.subarray(0, change.kind === 'cut' ? at : at + change.length)
          bytes = Buffer.concat([upTo, bytes.subarray(change.kind === 'cut' ? at + change.length : at)])
        }
      }
      return bytes
    })
}
