import type { SignatureFinding } from '../../classify/verdict/proof.ts'
import type { BotFault } from './web-bot-auth.ts'

/** Why a key that Signature-Key names is not used. */
export type KeyFieldFault =
  /** Its scheme, kind or algorithm is not supported, or no such key is published. */
  | 'ignored-key'
  /** Signature-Key is too long to be read. */
  | 'key-too-large'
  /** The token with the key has expired, or is not valid yet. */
  | 'token-expired'
  /** The token with the key is for another server. */
  | 'token-for-another'
  /** Its issuer did not sign the token with the key. */
  | 'token-wrong'

export const SIGNATURE_FINDINGS: readonly SignatureFinding['kind'][] = [
  'proven',
  'key',
  'unchecked',
  'failed',
]

/** Messages for people: why a signature is invalid or could not be checked. */
export const SIGNATURE_FAULT_TEXTS: Readonly<Record<BotFault | CheckFault, string>> = {
  unsigned: 'it has no signature',
  malformed: 'the fields of the signature are damaged, or can be read in two ways',
  'too-large': 'the fields of the signature are too long, or too many',
  'other-tag': 'no signature has tag="web-bot-auth"',
  'no-created': 'it does not say when it was made',
  'no-expires': 'it does not say when it expires',
  'created-in-future': 'it was made in the future',
  'too-old': 'it was made too long ago',
  expired: 'it has expired',
  'lives-too-long': 'it is good for more than 24 hours',
  'not-covered': 'it does not cover @authority, or @target-uri',
  'no-component': 'what it covers is not in the request, or not known here',
  'other-key': 'it names another key',
  'other-algorithm': 'the key is for another algorithm',
  wrong: 'it was made for another request or with another key',
  'no-agent': 'it does not cover a Signature-Agent header that names exactly one agent',
  'other-agent': 'Signature-Agent is not the URL of an agent',
  'ignored-agent': 'Signature-Agent has an unknown type, or the directory that it names is not an origin',
  'payment-tag': 'its tag is that of a payment protocol, which is not verified here',
  'no-thumbprint': 'keyid is not the thumbprint of a key',
  several: 'more than one signature has tag="web-bot-auth"',
  'ignored-key':
    'Signature-Key names its key by a scheme, kind or algorithm that is not supported, or no such key is published',
  'key-too-large': 'Signature-Key is too long to be read',
  'token-expired': 'the token with its key has expired, or is from the future',
  'token-for-another': 'the token with its key is for another server',
  'token-wrong': 'the token with its key is not signed by the issuer that it names',
  'other-host': 'the request is for a host that is not served here',
  'unknown-host': 'the hosts of this server are unknown: set identity.hosts',
  'no-nonce': 'it has no nonce, and could be used again',
  'unknown-key': 'the agent has no key with this thumbprint',
  'key-out-of-time': 'the agent has this key for another time',
  replayed: 'it was used before',
  'no-key-yet': 'the key of the agent is not known yet',
  'no-directory': 'the keys of the agent are unavailable',
  'not-listed': 'keys of this agent are not fetched',
  'too-many': 'too many invalid signatures arrived from there',
  'no-answer':
    'whether it was used before is unknown: it is older than this process, or its use was forgotten, or the answer took too long',
}

/** Faults that need local state or settings to detect. */
export type CheckFault =
  | ('other-host' | 'unknown-host' | 'no-nonce' | 'unknown-key' | 'key-out-of-time' | 'replayed')
  | KeyFieldFault
  | ('no-key-yet' | 'no-directory' | 'not-listed' | 'too-many' | 'no-answer')

/** All fault names of a finding; '' for valid signatures. */
export const SIGNATURE_FAULTS: readonly string[] = ['', ...Object.keys(SIGNATURE_FAULT_TEXTS)]
