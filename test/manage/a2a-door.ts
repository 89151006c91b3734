import assert from 'node:assert/strict'
import { BINDINGS, type BindingName } from './a2a-client.ts'
import type { TestManagement } from './management.ts'

/** What came of a call, as `/execute` says it: wrong arguments are an error of the tool, with where they are wrong. */
export interface Outcome {
  readonly isError: boolean
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
  readonly result: any
}

/** A way to have a tool run. */
export interface Door {
  readonly name: string
  call(tool: string, given: Readonly<Record<string, unknown>>): Promise<Outcome>
}

/** The two of A2A, open to who has this key. */
export function a2aDoors(manage: TestManagement, key: string): readonly Door[] {
  return BINDINGS.map((binding) => ({
    name: `A2A, ${binding}`,
    call: async (tool, given) => {
      const parts = [{ data: { tool, arguments: given } }]
      const message = { messageId: 'm', role: 'ROLE_USER', parts }
      const params = { message, configuration: { returnImmediately: true } }
      const { error, details, answer } = await sent(binding, params, manage, key)
      if (error !== undefined) return { isError: true, result: wrongIn(details) }
      if (answer.task !== undefined) return { isError: false, result: taskIn(answer.task) }
      return { isError: answer.message.metadata.is_error, result: answer.message.parts[0].data }
    },
  }))
}

async function sent(binding: BindingName, params: object, manage: TestManagement, key: string) {
  const headers = { 'a2a-version': '1.0', authorization: `Bearer ${key}` }
  if (binding === 'HTTP+JSON') {
    const { body } = await manage.ask('POST', '/a2a/v1/message:send', params, headers)
    return { error: body.error, details: body.error?.details, answer: body }
  }
  const call = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params }
  const { body } = await manage.ask('POST', '/a2a', call, headers)
  return { error: body.error, details: body.error?.data, answer: body.result }
}

/** `message.parts[0].data.arguments.items[3].ja4` as `/items/3/ja4`. */
// biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
function wrongIn(details: any): object {
  assert.equal(details[0].reason, 'INVALID_PARAMS', JSON.stringify(details))
  const errors = details[1].fieldViolations.map((each: { field: string; description: string }) => ({
    pointer: each.field
      .replace('message.parts[0].data.arguments', '')
      .replaceAll(/\[(\d+)\]/g, '/$1')
      .replaceAll('.', '/'),
    detail: each.description,
  }))
  return { code: 'invalid_request', errors }
}

/** As the API has it. */
// biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
function taskIn({ id, status, artifacts, metadata }: any): object {
  const name = STATUSES[status.state as keyof typeof STATUSES]
  const hasEnded = name === 'completed'
  return {
    ...{ task_id: id, status: name, ...metadata, error: null, created_at: status.timestamp },
    started_at: name === 'queued' ? null : status.timestamp,
    finished_at: hasEnded ? status.timestamp : null,
    ...(hasEnded && { results: artifacts[0].parts.map((part: { data: unknown }) => part.data) }),
  }
}

const STATUSES = {
  TASK_STATE_SUBMITTED: 'queued',
  TASK_STATE_WORKING: 'running',
  TASK_STATE_COMPLETED: 'completed',
} as const
