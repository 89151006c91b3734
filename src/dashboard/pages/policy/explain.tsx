import { useState } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import type { Policy, PolicyExplanation } from '../../api/operations.ts'
import { useAsked } from '../../api/use-asked.ts'
import { useDoing } from '../../api/use-doing.ts'
import { DEFAULT_APP } from '../../parts/chosen/app.ts'
import { Badge } from '../../parts/badge.tsx'
import { Facts } from '../../parts/facts.tsx'
import { Field } from '../../parts/field.tsx'
import { Form } from '../../parts/form.tsx'
import { Answered } from '../../parts/states.tsx'
import { Table } from '../../parts/table.tsx'
import { percent } from '../../parts/format.ts'
import { isLayered, layerText, policyOf, type PolicyPageOwner } from './owner.ts'
import { type Described, NOTHING_DESCRIBED, recorded, writtenRequest } from './described.ts'

interface Props {
  readonly owner: PolicyPageOwner
  /** The policy being edited; `null`: the policy in force. */
  readonly policy: Policy | null
}

/** Shows what the policy does to a pasted or recorded request, rule by rule. */
export function Explain({ owner, policy }: Props) {
  const { query } = useLocation()
  const id = query['request']
  return (
    <section class="card" aria-labelledby="explain">
      <h2 id="explain">Explain a request</h2>
      <p class="about">
        Evaluates the policy {policy === null ? 'in force' : 'in the editor above'}, rule by rule. Nothing is
        recorded.
      </p>
      {id === undefined ? (
        <Asking owner={owner} policy={policy} given={NOTHING_DESCRIBED} app={null} />
      ) : (
        <Recorded key={id} owner={owner} policy={policy} id={id} />
      )}
    </section>
  )
}

function Recorded({ owner, policy, id }: Props & { readonly id: string }) {
  const used = useAsked('getRequest', { path: { id } })
  return (
    <Answered used={used}>
      {(request) => (
        <>
          <p class="note">
            Recorded request: it was {DONE[request.action] ?? request.action} by {ruleText(request.rule)}. Of
            its headers only the User-Agent is recorded. Its query string is not recorded.
          </p>
          <Asking owner={owner} policy={policy} given={recorded(request)} app={request.app} />
        </>
      )}
    </Answered>
  )
}

interface AskingProps extends Props {
  readonly given: Described
  /** The app of a recorded request. */
  readonly app: string | null
}

function Asking({ owner, policy, given, app }: AskingProps) {
  const doing = useDoing()
  const [wrong, setWrong] = useState<string | null>(null)
  const [found, setFound] = useState<PolicyExplanation | null>(null)
  return (
    <>
      <Form
        label="Request"
        doing={doing}
        submit="Explain"
        done={async (data) => {
          const text = (name: keyof Described) => String(data.get(name) ?? '').trim()
          const written = writtenRequest({
            ...{ text: text('text'), ja4: text('ja4'), address: text('address') },
            ...{ kind: text('kind'), agent: text('agent'), category: given.category },
            purpose: given.purpose,
            ...{ mcpMethod: text('mcpMethod'), mcpTool: text('mcpTool') },
          })
          setWrong(typeof written === 'string' ? written : null)
          setFound(null)
          if (typeof written === 'string') return
          const body = policy === null ? { request: written } : { request: written, policy }
          setFound(await policyOf(owner).explain(body, app))
        }}
      >
        <Field
          label="Request, headers, or curl -v output"
          hint="Values of cookies, keys and tokens are removed before anything is sent."
          error={wrong}
        >
          {(tied) => <textarea {...tied} name="text" rows={6} spellcheck={false} defaultValue={given.text} />}
        </Field>
        <div class="fields">
          <Field label="JA4" error={doing.errorAt('/request/ja4')}>
            {(tied) => <input {...tied} name="ja4" spellcheck={false} defaultValue={given.ja4} />}
          </Field>
          <Field label="Address" error={doing.errorAt('/request/address')}>
            {(tied) => <input {...tied} name="address" spellcheck={false} defaultValue={given.address} />}
          </Field>
          <Field label="Verdict">
            {(tied) => (
              <select {...tied} name="kind" value={given.kind}>
                <option value="">from the request</option>
                {KINDS.map((kind) => (
                  <option key={kind} value={kind}>
                    {kind}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <Field label="Agent" hint="An agent ID, only with the verdict “agent”.">
            {(tied) => <input {...tied} name="agent" spellcheck={false} defaultValue={given.agent} />}
          </Field>
          <Field label="MCP tool" hint="Of a call to an app that is an MCP server.">
            {(tied) => <input {...tied} name="mcpTool" spellcheck={false} defaultValue={given.mcpTool} />}
          </Field>
          <Field label="MCP method" hint="Default with a tool: tools/call.">
            {(tied) => <input {...tied} name="mcpMethod" spellcheck={false} defaultValue={given.mcpMethod} />}
          </Field>
        </div>
      </Form>
      <div aria-live="polite">{found !== null && <Explanation found={found} />}</div>
    </>
  )
}

function Explanation({ found }: { readonly found: PolicyExplanation }) {
  const { app, verdict, rules, decision, unknown_signer_wait_ms: waitMs } = found
  const hasLayers = isLayered([...rules, decision])
  const { would_have: wouldHave } = decision
  return (
    <>
      <h3>
        <Badge of={decision.action} /> by {ruleText(decision.rule)}
        {hasLayers && ` (${layerText(decision.layer, app)})`}
      </h3>
      {wouldHave !== null && (
        <p class="note warn">
          On trial: without the trial, {ruleText(wouldHave.rule)} would decide {wouldHave.action}.
        </p>
      )}
      {waitMs !== null && (
        <p class="note">
          The request is signed. The signature is not checked here.{' '}
          {waitMs === 0
            ? 'If the key is not known yet, the proxy decides at once and treats the signature as unchecked.'
            : `If the key is not known yet, the proxy waits up to ${waitMs} ms for it.`}
        </p>
      )}
      <Facts
        of={[
          ['App', hasLayers || app !== DEFAULT_APP ? app : null],
          ['Verdict', <Badge key="kind" of={verdict.kind} />],
          ['Source', verdict.given ? 'chosen above' : 'classified from the request'],
          ['Software', verdict.software?.name ?? verdict.agent?.name ?? null],
          ['Category', verdict.agent?.category ?? null],
          ['Purpose', verdict.agent?.purpose.join(', ') ?? null],
          ['Confidence', verdict.given ? null : percent(verdict.confidence)],
          [
            'Name confidence',
            verdict.given || verdict.software === null ? null : percent(verdict.name_confidence),
          ],
          ['Verified by', verdict.verified],
        ]}
      />
      {rules.length === 0 ? (
        <p>The policy has no rules. Its default action (otherwise) applies.</p>
      ) : (
        <Table
          label="Rules"
          rows={rules}
          keyOf={({ layer, rule }) => `${layer} ${rule}`}
          columns={[
            { title: 'Rule', cell: ({ rule }) => rule },
            ...(hasLayers
              ? [
                  {
                    title: 'Layer',
                    cell: ({ layer }: PolicyExplanation['rules'][number]) => layerText(layer, app),
                  },
                ]
              : []),
            {
              title: 'Match',
              cell: ({ holds, decides }) => (
                <Badge
                  of={decides ? 'good' : 'plain'}
                  text={decides ? 'decides' : holds ? 'matches' : 'no match'}
                />
              ),
            },
            { title: 'Why', cell: ({ why }) => why },
          ]}
        />
      )}
    </>
  )
}

function ruleText(rule: string): string {
  return rule === 'otherwise' ? 'the default action (no rule matched)' : `rule “${rule}”`
}

const KINDS = ['agent', 'automation', 'human', 'unknown']
const DONE: Readonly<Record<string, string>> = {
  ...{ pass: 'passed', tag: 'passed with a tag', block: 'blocked', rate_limit: 'rate-limited' },
  ...{ tarpit: 'delayed, then blocked', redirect: 'redirected', route: 'sent to another upstream' },
  charge: 'passed if paid for',
}
