import { type Case, casesOf } from './http2-conformance-case.ts'
import { CONTROL_RULES } from './http2-conformance-control.ts'
import { FRAME_RULES } from './http2-conformance-frames.ts'
import { HPACK_RULES } from './http2-conformance-hpack.ts'
import { MESSAGE_RULES } from './http2-conformance-messages.ts'

export const CASES: readonly Case[] = [FRAME_RULES, CONTROL_RULES, MESSAGE_RULES, HPACK_RULES].flatMap(
  casesOf,
)
