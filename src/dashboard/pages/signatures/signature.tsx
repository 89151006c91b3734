import { useState } from 'preact/hooks'
import { useRoute } from 'preact-iso'
import { ask } from '../../api/ask.ts'
import type { AgentCategory, SubmissionRequest } from '../../api/operations.ts'
import { useDoing } from '../../api/use-doing.ts'
import { Badge } from '../../parts/badge.tsx'
import { Field } from '../../parts/field.tsx'
import { Form, textOf } from '../../parts/form.tsx'
import { Page } from '../../parts/page.tsx'
import { CATEGORIES, PURPOSES } from '../live/names.ts'
import { Found, type Which, Words } from './fingerprint-facts.tsx'
import { TYPES } from './signatures.tsx'

/** One fingerprint: its meaning, its owner, and similar ones. */
export function SignaturePage() {
  const { params } = useRoute()
  const type = TYPES.find((each) => each === params['type']) ?? 'ja4'
  const fingerprint = params['fingerprint']!
  return (
    <Page title="Fingerprint" help="verdicts" about={<a href="/dashboard/signatures">All signatures</a>}>
      <section class="card" aria-labelledby="which">
        <h2 id="which">
          <Badge of="plain" text={type} /> <code>{fingerprint}</code>
        </h2>
        <Words type={type} fingerprint={fingerprint} />
      </section>
      <Found type={type} fingerprint={fingerprint} />
      <Propose type={type} fingerprint={fingerprint} />
    </Page>
  )
}

function Propose({ type, fingerprint }: Which) {
  const doing = useDoing()
  const [made, setMade] = useState<string | null>(null)
  return (
    <details class="card">
      <summary>Propose software</summary>
      {made !== null && (
        <p class="note good" role="status">
          Your proposal was <a href={`/dashboard/signatures/submissions/${made}`}>submitted</a>. An
          administrator decides on it.
        </p>
      )}
      <Form
        label="Propose software"
        submit="Propose"
        doing={doing}
        done={async (data) => {
          const name = textOf(data, 'agent_name')
          const category = textOf(data, 'category') as AgentCategory | undefined
          const purpose = data.getAll('purpose') as NonNullable<SubmissionRequest['purpose']>
          const body: SubmissionRequest = {
            ...{ fingerprint, type },
            ...(name !== undefined && { agent_name: name }),
            ...(category !== undefined && { category }),
            ...(purpose.length > 0 && { purpose }),
            ...(textOf(data, 'user_agent') !== undefined && { user_agent: textOf(data, 'user_agent')! }),
            ...(textOf(data, 'notes') !== undefined && { notes: textOf(data, 'notes')! }),
          }
          const { submissions } = await ask('submitSignature', { body })
          setMade(submissions[0]!.id)
        }}
      >
        <Field label="Name of the agent" error={doing.errorAt('/agent_name')}>
          {(tied) => <input {...tied} name="agent_name" required />}
        </Field>
        <Field label="Category" error={doing.errorAt('/category')}>
          {(tied) => (
            <select {...tied} name="category">
              <option value="">unknown</option>
              {CATEGORIES.filter(({ category }) => category !== 'unnamed').map(({ category, label }) => (
                <option key={category} value={category}>
                  {label}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field label="Purpose" hint="What it is for. Several are allowed." error={doing.errorAt('/purpose')}>
          {(tied) => (
            <select {...tied} name="purpose" multiple size={4}>
              {PURPOSES.map(({ purpose, label }) => (
                <option key={purpose} value={purpose}>
                  {label}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field label="User-Agent" error={doing.errorAt('/user_agent')}>
          {(tied) => <input {...tied} name="user_agent" />}
        </Field>
        <Field label="Notes" hint="How you know, and where it was measured." error={doing.errorAt('/notes')}>
          {(tied) => <textarea {...tied} name="notes" rows={2} />}
        </Field>
      </Form>
    </details>
  )
}
