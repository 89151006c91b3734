import { serializeInnerList } from 'structured-headers'
import type { AgentKey } from '../keys/agent-key.ts'
import { isInTime } from '../keys/agent-key.ts'
import type { DocumentRules } from '../keys/agent-document.ts'
import { type HttpSignature, isCovered, verifySignature } from './http-signature.ts'
import { fieldValue, type SignedRequest } from '../signature/signature-base.ts'
import { type CheckFault, SIGNATURE_FAULT_TEXTS } from './signature-faults.ts'
import { readSignatureFields } from '../signature/signature-fields.ts'
import { type BotFault, type BotSignature, type ReadBotSignature, readBotSignatures } from './web-bot-auth.ts'

/** One step of the check and its outcome. */
export interface Step {
  readonly name: StepName
  readonly outcome: 'ok' | 'failed' | 'not-reached'
  /** Message for people. */
  readonly detail: string
}

export interface Explained {
  readonly steps: readonly Step[]
  readonly fault: BotFault | CheckFault | null
  /** The proven signer, if all steps succeed. */
  readonly proven: { readonly agentId: string; readonly thumbprint: string } | null
  /** `null`: the signature could not be parsed. */
  readonly signature: HttpSignature | null
}

/** Returns the keys of an agent and their source. Throws a Fault if they are unavailable. */
export type FindKeys = (
  agentId: string,
) => Promise<{ readonly keys: readonly AgentKey[]; readonly from: string }>

/** Runs the real signature check on a request and explains each step: of the signature that is valid, or of the first. */
export async function explainSignature(
  request: SignedRequest,
  rules: DocumentRules,
  findKeys: FindKeys,
  nowMs: number,
): Promise<Explained> {
  const all = await Promise.all(
    readBotSignatures(request, rules, nowMs).map((read) => explainOne(read, request, findKeys, nowMs)),
  )
  return all.find(({ proven }) => proven !== null) ?? all[0]!
}

async function explainOne(
  read: ReadBotSignature,
  request: SignedRequest,
  findKeys: FindKeys,
  nowMs: number,
): Promise<Explained> {
  if (read.kind === 'refused') {
    const failed = STEP_OF[read.fault]
    const said = STEPS_OF_READING.map((name) => {
      const isBefore = STEPS_OF_READING.indexOf(name) < STEPS_OF_READING.indexOf(failed)
      if (name === failed) return step(name, 'failed', SIGNATURE_FAULT_TEXTS[read.fault])
      return isBefore ? step(name, 'ok', saidOf(name, request, null)) : notReached(name)
    })
    return {
      steps: [...said, ...AFTERWARDS.map(notReached)],
      fault: read.fault,
      proven: null,
      signature: null,
    }
  }
  const reading = STEPS_OF_READING.map((name) => step(name, 'ok', saidOf(name, request, read)))
  const { steps, fault } = await checked(read, findKeys, nowMs)
  const { agentId, thumbprint, signature } = read
  const proven = fault === null ? { agentId, thumbprint } : null
  return { steps: [...reading, ...steps], fault, proven, signature }
}

async function checked(
  { agentId, thumbprint, signature }: BotSignature,
  findKeys: FindKeys,
  nowMs: number,
): Promise<{ readonly steps: readonly Step[]; readonly fault: BotFault | CheckFault | null }> {
  const steps: Step[] = []
  const fail = (name: StepName, fault: BotFault | CheckFault, more = '') => {
    steps.push(step(name, 'failed', `${SIGNATURE_FAULT_TEXTS[fault]}${more}`))
    return { steps: [...steps, ...AFTERWARDS.slice(steps.length).map(notReached)], fault }
  }
  let found: Awaited<ReturnType<FindKeys>>
  try {
    found = await findKeys(agentId)
  } catch (error) {
    return fail('directory', 'no-directory', `: ${(error as Error).message}`)
  }
  const { keys, from } = found
  const count = keys.length === 1 ? 'one key' : `${keys.length} keys`
  steps.push(step('directory', 'ok', `${count} from ${from}`))
  const key = keys.find((each) => each.thumbprint === thumbprint)
  if (key === undefined)
    return fail('key', 'unknown-key', `; it has ${keys.map((each) => each.thumbprint).join(', ')}`)
  if (!key.signsRequests) return fail('key', 'other-algorithm')
  if (!isInTime(key, nowMs)) return fail('key', 'key-out-of-time')
  steps.push(step('key', 'ok', `${key.algorithm}, ${key.thumbprint}`))
  const fault = verifySignature(signature, key)
  if (fault !== null) return fail('signature', fault)
  steps.push(step('signature', 'ok', `made by this key, of ${signature.base.length} bytes`))
  return { steps, fault: null }
}

/** The message for a step that succeeded. */
function saidOf(name: StepName, request: SignedRequest, read: BotSignature | null): string {
  const fields = readSignatureFields(request.rawHeaders)
  const signatures = fields.kind === 'signatures' ? fields.signatures : []
  switch (name) {
    case 'fields':
      return signatures.map(({ label, bytes }) => `${label}: ${bytes.length} bytes`).join(', ')
    case 'tag':
      return signatures.map(({ input }) => `tag="${String(input[1].get('tag'))}"`).join(', ')
    case 'times': {
      if (read === null) return ''
      const { createdS, expiresS } = read.signature
      return `made ${timeOf(createdS)}, good until ${expiresS === null ? 'its age ends it' : timeOf(expiresS)}`
    }
    case 'components':
      return signatures.map(({ input }) => serializeInnerList([input[0], new Map()])).join(', ')
    case 'agent': {
      const text = fieldValue(request.rawHeaders, 'signature-agent')
      const covered = read === null || isCovered(read.signature, 'signature-agent') ? '' : ', a member of it'
      return read === null ? `Signature-Agent: ${text}` : `${read.agentId}${covered}`
    }
    case 'keyid':
      return read?.thumbprint ?? ''
    case 'directory':
    case 'key':
    case 'signature':
    case 'body':
      return ''
  }
}

function timeOf(seconds: number): string {
  const ms = seconds * 1_000
  return ms <= DATE_MS_MAX ? new Date(ms).toISOString() : `${seconds} s`
}

function step(name: StepName, outcome: Step['outcome'], detail: string): Step {
  return { name, outcome, detail }
}

function notReached(name: StepName): Step {
  return step(name, 'not-reached', '')
}

/** `body`: for callers that have the body. */
export type StepName = (typeof STEPS_OF_READING)[number] | (typeof AFTERWARDS)[number] | 'body'

const STEPS_OF_READING = ['fields', 'tag', 'times', 'components', 'agent', 'keyid'] as const
const AFTERWARDS = ['directory', 'key', 'signature'] as const
const STEP_OF: Readonly<Record<BotFault, (typeof STEPS_OF_READING)[number]>> = {
  unsigned: 'fields',
  malformed: 'fields',
  'too-large': 'fields',
  'other-tag': 'tag',
  several: 'tag',
  'no-created': 'times',
  'no-expires': 'times',
  'created-in-future': 'times',
  'too-old': 'times',
  expired: 'times',
  'lives-too-long': 'times',
  'not-covered': 'components',
  'no-component': 'components',
  'no-agent': 'agent',
  'other-agent': 'agent',
  'ignored-agent': 'agent',
  'payment-tag': 'tag',
  'no-thumbprint': 'keyid',
  // These faults belong to later steps, never to parsing.
  'other-key': 'keyid',
  'other-algorithm': 'keyid',
  wrong: 'keyid',
}
const DATE_MS_MAX = 8_640_000_000_000_000
