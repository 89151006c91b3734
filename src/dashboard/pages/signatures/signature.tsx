import { useState } from 'preact/hooks'
import { useRoute } from 'preact-iso'
import { ask } from '../../api/ask.ts'
import type {
  AgentCategory,
  FingerprintType,
  FoundSignature,
  SubmissionRequest,
} from '../../api/operations.ts'
import { useAsked } from '../../api/use-asked.ts'
import { useDoing } from '../../api/use-doing.ts'
import { Badge } from '../../parts/badge.tsx'
import { Facts } from '../../parts/facts.tsx'
import { Field } from '../../parts/field.tsx'
import { Form, textOf } from '../../parts/form.tsx'
import { percent, whole } from '../../parts/format.ts'
import { Page } from '../../parts/page.tsx'
import { Answered, Empty } from '../../parts/states.tsx'
import { FullTime, Time } from '../../parts/time.tsx'
import { CATEGORIES } from '../live/names.ts'
import { ja4Words } from './ja4-words.ts'
import { hrefOf, TYPES } from './signatures.tsx'

/** One fingerprint: what it says, whose it is, and what looks like it. */
export function SignaturePage() {
  const { params } = useRoute()
  const type = TYPES.find((each) => each === params['type']) ?? 'ja4'
  const fingerprint = params['fingerprint']!
  return (
    <Page title="Fingerprint" about={<a href="/dashboard/signatures">All signatures</a>}>
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

interface Which {
  readonly type: FingerprintType
  readonly fingerprint: string
}

function Words({ type, fingerprint }: Which) {
  const words = type === 'ja4' ? ja4Words(fingerprint) : null
  return words === null ? <p class="soft">{ABOUT[type]}</p> : <Facts of={words} />
}

function Found({ type, fingerprint }: Which) {
  // A pattern (`…_*_*`) is no fingerprint that could be looked up: it is found in the list.
  const isPattern = fingerprint.includes('*')
  return isPattern ? <OfPattern {...{ type, fingerprint }} /> : <OfFingerprint {...{ type, fingerprint }} />
}

function OfPattern({ type, fingerprint }: Which) {
  const used = useAsked('listSignatures', { query: { type, q: fingerprint, limit: 50 } })
  return <Answered used={used}>{({ signatures }) => <Whose found={signatures} />}</Answered>
}

function OfFingerprint({ type, fingerprint }: Which) {
  const used = useAsked('lookupFingerprint', { query: { [type]: fingerprint, match: 'partial' } })
  return (
    <Answered used={used}>
      {(found) => (
        <>
          <Whose found={found.filter(({ fingerprint: other }) => other === fingerprint)} />
          <LookAlikes found={found.filter(({ fingerprint: other }) => other !== fingerprint)} />
        </>
      )}
    </Answered>
  )
}

function Whose({ found }: { readonly found: readonly FoundSignature[] }) {
  return (
    <section class="card" aria-labelledby="whose">
      <h2 id="whose">Whose it is</h2>
      {found.length === 0 && (
        <Empty title="Nobody is known to have it.">
          <p>What looks like it is below. Who knows whose it is can propose it.</p>
        </Empty>
      )}
      {found.map((each) => (
        <Facts
          key={`${each.agent_id}`}
          of={[
            [
              'Software',
              each.agent_id === null ? (
                <Badge of="unknown" />
              ) : (
                <a href={`/dashboard/agents/${encodeURIComponent(each.agent_id)}`}>{each.agent_name}</a>
              ),
            ],
            ['Kind', each.kind],
            [
              'Sure',
              `${percent(each.confidence)}${each.decisive ? ', and it decides alone' : ', as one piece of evidence'}`,
            ],
            ['Observations', whole(each.observations)],
            ['Requests here', whole(each.requests_seen)],
            ['State', `${each.status}, ${each.source}`],
            ['Known since', <FullTime key="first" at={each.first_seen} />],
            ['Last seen here', <Time key="last" at={each.last_seen} />],
          ]}
        />
      ))}
    </section>
  )
}

function LookAlikes({ found }: { readonly found: readonly FoundSignature[] }) {
  return (
    <section class="card" aria-labelledby="alike">
      <h2 id="alike">What looks like it</h2>
      {found.length === 0 ? (
        <Empty title="Nothing that is known." />
      ) : (
        <div class="scrolled">
          <table>
            <thead>
              <tr>
                <th scope="col">Fingerprint</th>
                <th scope="col">Whose</th>
                <th scope="col" class="number">
                  Alike
                </th>
              </tr>
            </thead>
            <tbody>
              {found.slice(0, SHOWN_MAX).map((each) => (
                <tr key={`${each.fingerprint} ${each.agent_id}`}>
                  <th scope="row">
                    <a href={hrefOf(each)}>
                      <code>{each.fingerprint}</code>
                    </a>
                  </th>
                  <td>{each.agent_name ?? 'unknown'}</td>
                  <td class="number">{each.score === undefined ? '' : percent(each.score)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  )
}

function Propose({ type, fingerprint }: Which) {
  const doing = useDoing()
  const [made, setMade] = useState<string | null>(null)
  return (
    <details class="card">
      <summary>Propose whose it is</summary>
      {made !== null && (
        <p class="note good" role="status">
          It is <a href={`/dashboard/signatures/submissions/${made}`}>submitted</a>: an administrator decides
          on it.
        </p>
      )}
      <Form
        label="Propose whose it is"
        submit="Propose"
        doing={doing}
        done={async (data) => {
          const name = textOf(data, 'agent_name')
          const category = textOf(data, 'category') as AgentCategory | undefined
          const body: SubmissionRequest = {
            ...{ fingerprint, type },
            ...(name !== undefined && { agent_name: name }),
            ...(category !== undefined && { category }),
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
              <option value="">not known</option>
              {CATEGORIES.filter(({ category }) => category !== 'unnamed').map(({ category, label }) => (
                <option key={category} value={category}>
                  {label}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field label="Its User-Agent" error={doing.errorAt('/user_agent')}>
          {(tied) => <input {...tied} name="user_agent" />}
        </Field>
        <Field
          label="How you know"
          hint="Where it was measured, for who decides."
          error={doing.errorAt('/notes')}
        >
          {(tied) => <textarea {...tied} name="notes" rows={2} />}
        </Field>
      </Form>
    </details>
  )
}

const ABOUT: Readonly<Record<FingerprintType, string>> = {
  ja4: 'This is no JA4.',
  ja4s: 'What a server chose of what was offered to it.',
  ja4h: 'A request: its method, version, cookies, language, and the order of its headers.',
  ja4x: 'How a certificate is made: its issuer, its subject, its extensions.',
}
const SHOWN_MAX = 50
