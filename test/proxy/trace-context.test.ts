import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { parseTraceparent, putTraceContext, traceContextIn } from '../../src/proxy/request/trace-context.ts'
import { timeBox } from '../time-box.ts'

/** The example of W3C Trace Context, §3.2.3. */
const [TRACE, SPAN] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7']
const GOOD = `00-${TRACE}-${SPAN}-01`

test('a traceparent is read as the recommendation says', async () => {
  const said = { traceId: TRACE, spanId: SPAN }
  assert.deepEqual(parseTraceparent(GOOD), { ...said, isSampled: true })
  assert.deepEqual(parseTraceparent(`00-${TRACE}-${SPAN}-00`), { ...said, isSampled: false })
  // Of the flags only the lowest is known.
  assert.deepEqual(parseTraceparent(`00-${TRACE}-${SPAN}-fe`), { ...said, isSampled: false })
  // §4.3: of a later version what is known is taken.
  assert.deepEqual(parseTraceparent(`cc-${TRACE}-${SPAN}-01-what-the-future-will-be-like`), {
    ...said,
    isSampled: true,
  })
  assert.deepEqual(parseTraceparent(`cc-${TRACE}-${SPAN}-01`), { ...said, isSampled: true })
  for (const wrong of [
    ...['', '00', `ff-${TRACE}-${SPAN}-01`, `0-${TRACE}-${SPAN}-01`, `00-${TRACE}-${SPAN}-1`],
    ...[`00-${TRACE}-${SPAN}-01-more`, `cc-${TRACE}-${SPAN}-01.more`, `00-${TRACE}-${SPAN}-01 `],
    ...[`00-${'0'.repeat(32)}-${SPAN}-01`, `00-${TRACE}-${'0'.repeat(16)}-01`],
    ...[`00-${TRACE.toUpperCase()}-${SPAN}-01`, `00-${TRACE.slice(1)}-${SPAN}-01`, `00-${TRACE}-${SPAN}-0g`],
    `00.${TRACE}.${SPAN}.01`,
  ])
    assert.equal(parseTraceparent(wrong), null, wrong)
})

test('whatever is sent, it is read or it is not, and nothing throws', async () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom('0', 'a', '-', 'f'), maxLength: 60 })),
      (text) => {
        const read = parseTraceparent(text)
        if (read !== null) assert.equal(`${read.traceId}-${read.spanId}`, text.slice(3, 52))
      },
    ),
    timeBox(20_000, 2_000),
  )
})

test('ignores two of them, in any case of letters', async () => {
  assert.equal(traceContextIn(['Host', 'a', 'TraceParent', GOOD])?.traceId, TRACE)
  assert.equal(traceContextIn(['traceparent', GOOD, 'Traceparent', GOOD]), null)
  assert.equal(traceContextIn(['x', GOOD]), null)
})

test('ours replaces all others, and a tracestate stays if the trace continues', async () => {
  const sent = ['A', '1', 'Traceparent', 'x', 'tracestate', 'a=b', 'TRACEPARENT', 'y', 'B', '2']
  const ours = { traceId: TRACE, spanId: SPAN, isSampled: true }
  const anew = [...sent]
  putTraceContext(anew, ours, false)
  assert.deepEqual(anew, ['A', '1', 'B', '2', 'traceparent', GOOD])
  const goesOn = [...sent]
  putTraceContext(goesOn, { ...ours, isSampled: false }, true)
  assert.deepEqual(goesOn, ['A', '1', 'tracestate', 'a=b', 'B', '2', 'traceparent', `00-${TRACE}-${SPAN}-00`])
})
