import { isDeepStrictEqual } from 'node:util'
import type { Outcome } from './server-line.ts'
import type { ServerCase } from './server-cases.ts'

/** A difference between our own server and node:http2 that is meant. */
export interface Difference {
  readonly name: string
  readonly reason: string
  explains(plan: ServerCase, own: Outcome, node: Outcome): boolean
}

export const KNOWN_DIFFERENCES: readonly Difference[] = [
  {
    name: 'answers a malformed request before the reset',
    reason: 'RFC 9113 §8.1.1: a server MAY send an HTTP response prior to closing or resetting the stream.',
    explains: (_plan, own, node) =>
      isRefused(own, ['400', '417']) &&
      (isReset(node, [PROTOCOL_ERROR]) || (own.code === PROTOCOL_ERROR && isRefused(node, ['400']))),
  },
  {
    name: 'answers before it can see that the length of the body is wrong',
    reason: 'The same; and node:http2 may end the connection, or reset a stream that it has answered whole.',
    explains: ({ hasWrongLength }, own, node) =>
      hasWrongLength &&
      own.got?.body == null &&
      (isReset(node, REFUSALS) || (isDeepStrictEqual(own.heads, node.heads) && node.code === PROTOCOL_ERROR)),
  },
  {
    name: 'sees before an early answer that the length of the body is wrong',
    reason:
      'The same: it depends on which comes first, the end of the body or an answer that does not wait for it.',
    explains: ({ hasWrongLength }, own) => hasWrongLength && isRefused(own, ['400']),
  },
  {
    name: 'refuses a body of the wrong length with another status or code',
    reason:
      'RFC 9113 §8.1.1: both are stream errors. Whether the answer has begun is a matter of time, and node:http2 may call it its own error.',
    explains: ({ hasWrongLength }, own, node) =>
      hasWrongLength &&
      isDeepStrictEqual(own.got, node.got) &&
      [own, node].every((each) => REFUSALS.includes(each.code) || isAnswered(each, '400')),
  },
  {
    name: 'says in a text why it refuses a request whose body is still coming',
    reason: 'curl (7.88) waits on where no length says that the answer is whole.',
    explains: ({ request }, own, node) => {
      // The text of an answer gives the client something to reset the stream at.
      const codes = request.reset === 'answered' || request.reset === 'within' ? [0, CANCEL] : [0]
      return (
        codes.includes(own.code) &&
        codes.includes(node.code) &&
        isRefused(own, ['400', '417', '431']) &&
        isDeepStrictEqual(withoutText(own), { ...node, code: own.code })
      )
    },
  },
  {
    name: 'answers 431 to a list of headers that is too large',
    reason: 'RFC 9113 §10.5.1: a server that receives a larger field block can send 431.',
    explains: (_plan, own, node) =>
      isRefused(own, ['431']) && isReset(node, [PROTOCOL_ERROR, ENHANCE_YOUR_CALM]),
  },
]

/** The app has seen nothing of it, or no end. */
function isRefused(outcome: Outcome, statuses: readonly string[]): boolean {
  const { got } = outcome
  const heads = finalHeads(outcome)
  return heads.length === 1 && statuses.includes(heads[0]![1]!) && (got === null || got.body === null)
}

function isAnswered(outcome: Outcome, status: string): boolean {
  const heads = finalHeads(outcome)
  return heads.length === 1 && heads[0]![1] === status
}

function withoutText(own: Outcome): Outcome {
  const heads = own.heads.map((head) => head.filter((_text, i) => !/^content-/.test(head[i - (i % 2)]!)))
  return { ...own, heads, body: '' }
}

/** A request that waits for a 100 may be refused behind it. */
function finalHeads({ heads }: Outcome): readonly (readonly string[])[] {
  return heads.filter(([, status]) => status !== '100')
}

function isReset(outcome: Outcome, codes: readonly number[]): boolean {
  const { got, code } = outcome
  return finalHeads(outcome).length === 0 && (got === null || got.body === null) && codes.includes(code)
}

const [PROTOCOL_ERROR, INTERNAL_ERROR, CANCEL, ENHANCE_YOUR_CALM] = [1, 2, 8, 11]
const REFUSALS: readonly number[] = [PROTOCOL_ERROR, INTERNAL_ERROR, CANCEL]
