import * as z from 'zod'

// The JSON that A2A 1.0 operations take (§5.5). Unknown members are ignored, as §5.7 requires. A known member
// of the wrong type is refused; the SDK's codecs would convert it to text.

const CONTENTS = ['text', 'data', 'raw', 'url'] as const
const TASK_STATES = [
  'TASK_STATE_UNSPECIFIED',
  'TASK_STATE_SUBMITTED',
  'TASK_STATE_WORKING',
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_INPUT_REQUIRED',
  'TASK_STATE_REJECTED',
  'TASK_STATE_AUTH_REQUIRED',
] as const
const PAGE_SIZES = 'must be a whole number from 1 to 100'

const id = z.string().min(1, 'is empty').max(200, 'is longer than 200 characters')
/** In an optional text, an empty string and null both mean absent (ProtoJSON). */
const optionalId = z
  .string()
  .max(200, 'is longer than 200 characters')
  .nullish()
  .transform((text) => text || null)
const text = z.string().nullish()
const count = z.int('must be a whole number').min(0, 'must be at least 0').max(2_147_483_647)
const struct = z.record(z.string(), z.unknown()).nullish()

const part = z
  .object({
    text: z.string().nullish(),
    data: z.unknown().optional(),
    raw: text,
    url: text,
    mediaType: z.string().max(200, 'is longer than 200 characters').nullish(),
    filename: text,
    metadata: struct,
  })
  .superRefine((given, context) => {
    const has = CONTENTS.filter((name) => given[name] != null)
    if (has.length !== 1)
      context.addIssue({ code: 'custom', message: 'must have exactly one of text, data, raw and url' })
  })

const contextId = z
  .string()
  .regex(/^[\x21-\x7e]{0,128}$/, 'takes up to 128 visible characters of ASCII')
  .nullish()
  .transform((given) => given || null)

const message = z.object({
  messageId: id,
  contextId,
  taskId: optionalId,
  role: z.literal('ROLE_USER', 'must be ROLE_USER: messages from clients have the role of the user'),
  parts: z.array(part).min(1, 'is empty').max(100, 'has more than 100 parts'),
  metadata: struct,
  extensions: z.array(z.string()).max(100).nullish(),
  referenceTaskIds: z.array(z.string()).max(100).nullish(),
})

/** A secret that is sent in a header of the push notification. */
const secret = z
  .string()
  .regex(/^[\x20-\x7e]{0,4096}$/, 'takes up to 4096 visible characters of ASCII')
  .nullish()
  .transform((given) => given || null)

const pushFields = {
  id: z
    .string()
    .regex(/^[\w.:-]{0,100}$/, 'takes up to 100 letters, digits and . : _ -')
    .nullish()
    .transform((given) => given || null),
  url: z.string().min(1, 'is empty').max(2048, 'is longer than 2048 characters'),
  token: secret,
  authentication: z
    .object({
      scheme: z
        .string()
        .regex(/^[!#$%&'*+.^_`|~\w-]{1,64}$/, 'must be the name of an HTTP authentication scheme'),
      credentials: secret,
    })
    .nullish(),
}

export const pushConfig = z.object({ ...pushFields, taskId: id })
export const sendParams = z.object({
  message,
  configuration: z
    .object({
      acceptedOutputModes: z.array(z.string()).max(100).nullish(),
      taskPushNotificationConfig: z.object(pushFields).nullish(),
      historyLength: count.nullish(),
      returnImmediately: z.boolean().nullish(),
    })
    .nullish(),
  metadata: struct,
})
export const taskParams = z.object({ id, historyLength: count.nullish() })
export const listParams = z.object({
  contextId,
  status: z.enum(['', ...TASK_STATES], 'must be a task state, such as TASK_STATE_WORKING').nullish(),
  pageSize: z.int('must be a whole number').min(1, PAGE_SIZES).max(100, PAGE_SIZES).nullish(),
  pageToken: z.string().max(2_048, 'is not a valid page token').nullish(),
  historyLength: count.nullish(),
  statusTimestampAfter: z.iso
    .datetime({ offset: true, error: 'must be a time like 2026-11-21T09:30:00Z' })
    .nullish(),
  includeArtifacts: z.boolean().nullish(),
})
export const pushParams = z.object({ taskId: id, id })
export const pushListParams = z.object({ taskId: id })
export const noParams = z.object({})

export type Message = z.output<typeof message>
export type MessagePart = z.output<typeof part>
export type PushConfig = z.output<z.ZodObject<typeof pushFields>>
export type SendParams = z.output<typeof sendParams>
