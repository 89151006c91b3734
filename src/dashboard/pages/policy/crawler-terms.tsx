import { useState } from 'preact/hooks'
import type { Policy, PolicyTerms } from '../../api/operations.ts'
import { useDoing } from '../../api/use-doing.ts'
import { Copy } from '../../parts/copy.tsx'
import { Field } from '../../parts/field.tsx'
import { Form, textOf } from '../../parts/form.tsx'
import { counted } from '../../parts/format.ts'
import { Preformatted } from '../../parts/preformatted.tsx'
import { Table } from '../../parts/table.tsx'
import { policyOf, type PolicyPageOwner } from './owner.ts'

interface Props {
  readonly owner: PolicyPageOwner
  /** The policy being edited; `null`: the policy in force. */
  readonly policy: Policy | null
}

/** Shows the policy as crawlers read it, and where the robots.txt of the app says something else. */
export function CrawlerTerms({ owner, policy }: Props) {
  const doing = useDoing()
  const [found, setFound] = useState<PolicyTerms | null>(null)
  return (
    <section class="card" aria-labelledby="terms">
      <h2 id="terms">What crawlers read</h2>
      <p class="about">
        The policy {policy === null ? 'in force' : 'in the editor above'} as robots.txt, Content-Usage and
        RSL. The proxy publishes it if the settings say so: see{' '}
        <a href="/dashboard/help/terms">Tell crawlers what the policy does</a>.
      </p>
      <Form
        label="Terms for crawlers"
        doing={doing}
        submit="Show"
        done={async (data) => {
          setFound(null)
          const [host, robots] = [textOf(data, 'host'), textOf(data, 'robots')]
          const asked = { ...(host !== undefined && { host }), ...(robots !== undefined && { robots }) }
          setFound(await policyOf(owner).terms(policy === null ? asked : { ...asked, policy }))
        }}
      >
        <Field
          label="robots.txt of the app"
          hint="Optional. Its rules are kept, and compared with the policy."
          error={doing.errorAt('/robots')}
        >
          {(tied) => <textarea {...tied} name="robots" rows={4} spellcheck={false} />}
        </Field>
        <Field label="Host" hint="If the policy tells hosts apart." error={doing.errorAt('/host')}>
          {(tied) => <input {...tied} name="host" spellcheck={false} />}
        </Field>
      </Form>
      {found !== null && <Found terms={found} />}
    </section>
  )
}

function Found({ terms }: { readonly terms: PolicyTerms }) {
  const { robots, content_usage, rsl, unpublished, contradictions, complete } = terms
  return (
    <>
      {unpublished.length > 0 && (
        <p class="note">
          Not published, because their paths stand in an expression:{' '}
          {unpublished.map(({ rule }) => rule).join(', ')}
        </p>
      )}
      {contradictions !== null && (
        <>
          <p role="status">
            {contradictions.length === 0
              ? 'robots.txt and the policy say the same to every crawler.'
              : counted(contradictions.length, 'contradiction')}
            {!complete && ' There may be more: the patterns take too long to compare.'}
          </p>
          {contradictions.length > 0 && <Contradictions of={contradictions} />}
        </>
      )}
      <div class="copied">
        <Preformatted label="robots.txt" text={robots} />
        <Copy text={robots} />
      </div>
      {content_usage.length > 0 && (
        <Table
          label="Content-Usage"
          rows={content_usage}
          keyOf={({ path }) => path}
          columns={[
            { title: 'Path', cell: ({ path }) => <code>{path}</code> },
            { title: 'Content-Usage', cell: ({ value }) => <code>{value}</code> },
          ]}
        />
      )}
      <div class="copied">
        <Preformatted label="RSL" text={rsl} />
        <Copy text={rsl} />
      </div>
    </>
  )
}

function Contradictions({ of }: { readonly of: NonNullable<PolicyTerms['contradictions']> }) {
  return (
    <Table
      label="Contradictions"
      rows={of}
      keyOf={({ kind, path, line }) => `${kind} ${path} ${line}`}
      columns={[
        { title: 'Path', cell: ({ path }) => <code>{path}</code> },
        {
          title: 'robots.txt',
          cell: ({ line, rule }) => (line === null ? 'nothing forbids it' : `${line}: ${rule}`),
        },
        { title: 'Policy', cell: ({ kind }) => (kind === 'refused' ? 'refuses it' : 'lets it in') },
        { title: 'Crawlers', cell: ({ user_agents }) => crawlers(user_agents) },
      ]}
    />
  )
}

function crawlers(names: readonly string[]): string {
  const shown = names
    .slice(0, NAMES_MAX)
    .map((name) => (name === '*' ? 'crawlers without a signature' : name))
  const more = names.length - shown.length
  return more === 0 ? shown.join(', ') : `${shown.join(', ')} and ${more} more`
}

const NAMES_MAX = 5
