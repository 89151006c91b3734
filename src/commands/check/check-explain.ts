import type { Proof } from '../../classify/verdict/proof.ts'
import type { Verdict } from '../../classify/verdict/verdict.ts'
import { isSigned } from '../../identity/verify/signature-check.ts'
import { placed } from '../../config/source.ts'
import { DEFAULT_APP } from '../../apps/app.ts'
import type { PolicyLayer } from '../../policy/action.ts'
import { type Explanation, explain } from '../../policy/explain.ts'
import { rulesOf, whyOf } from '../../policy/explanation-text.ts'
import type { Policy } from '../../policy/policy.ts'
import { type DescribedFacts, describedRequest, readWrittenRequest } from '../../policy/written-request.ts'
import { type ActionEffect, effectsOf } from './action-text.ts'
import { requestSource } from './request-source.ts'
import type { Arguments, ExitCode } from '../../terminal/command.ts'
import { type Io, paint } from '../../terminal/io.ts'
import { givenKnowledge } from '../../runtime/signatures/knowledge-source.ts'
import { givenPolicies, sayWarnings } from './given-policies.ts'
import { visible } from '../../terminal/table.ts'

/** `gatehouse check --explain`: shows what a policy does to one request, rule by rule. */
export async function explainRequest(file: string, given: Arguments, io: Io): Promise<ExitCode> {
  const knowledge = await givenKnowledge(given, io)
  const policies = await givenPolicies(given, io, knowledge.names)
  const { name } = policies
  sayWarnings(io, policies)
  const source = await requestSource(file, given, io)
  const written = placed(source, () => readWrittenRequest(source.value))
  const request = describedRequest(
    written,
    { names: knowledge.names, knowledge: () => knowledge },
    Date.now(),
  )
  const app = policies.app ?? policies.index.appOf(request.facts.host ?? '').id
  const policy = policies.with(policies.policy)(app)!
  const explanation = explain(policy, request.facts, Date.now())
  const effects = effectsOf(explanation.decision.action, request)
  const unknownSigner = isSigned(request.facts.rawHeaders) ? unknownSignerOf(policy) : null
  const explained = { policy: name, app, request, explanation, effects, unknownSigner }
  if (given.flag('json')) {
    io.stdout.write(`${JSON.stringify(json(explained), null, 2)}\n`)
  } else {
    for (const line of lines(explained, io)) io.stdout.write(`${line}\n`)
  }
  return 0
}

function json({ policy, app, request, explanation, effects, unknownSigner }: Explained): object {
  const { facts, isVerdictGiven } = request
  const { decision, rules } = explanation
  const { action, rule, layer, wouldHave } = decision
  const { agent } = facts.verdict
  return {
    policy,
    app,
    verdict: { ...facts.verdict, agent: agent && shownAgent(agent), assumed: isVerdictGiven },
    rules: rulesOf(rules),
    decision: { rule, layer, action, would_have: wouldHave === null ? null : { ...wouldHave } },
    effects,
    ...(unknownSigner !== null && { unknown_signer: unknownSigner.action }),
  }
}

function shownAgent({ id, name, category, purposes }: NonNullable<Verdict['agent']>) {
  return { id, name, category, purpose: purposes }
}

interface Explained {
  readonly policy: string
  readonly app: string
  readonly request: DescribedFacts
  readonly explanation: Explanation
  readonly effects: readonly ActionEffect[]
  readonly unknownSigner: UnknownSigner | null
}

function lines(
  { policy, app, request, explanation, effects, unknownSigner }: Explained,
  io: Io,
): readonly string[] {
  const { facts, isVerdictGiven } = request
  const { decision, rules } = explanation
  const from = isVerdictGiven ? 'given with the request' : 'classified from the request'
  const width = Math.max(9, ...rules.map(({ rule }) => rule.length))
  // Without apps, there is only one layer.
  const isLayered = app !== DEFAULT_APP || rules.some(({ layer }) => layer !== 'last')
  const layerOf = (layer: PolicyLayer) => (isLayered ? ` (${layer})` : '')
  const column = (layer: PolicyLayer) => (isLayered ? `${layer.padEnd(LAYER_WIDTH)}  ` : '')
  const walk = rules.flatMap((each) => {
    const mark = each.decides ? paint(io, 'bold', 'yes') : each.holds ? 'yes' : 'no '
    return [`${each.rule.padEnd(width)}  ${column(each.layer)}${mark}  ${visible(whyOf(each))}`]
  })
  const { wouldHave } = decision
  return [
    `request  ${visible(`${facts.method} ${facts.host ?? ''}${facts.path}`)}${facts.address === '' ? '' : ` from ${visible(facts.address)}`}`,
    `verdict  ${visible(verdictText(facts.verdict))} (${from})`,
    ...evidenceLines(facts.verdict),
    ...(unknownSigner === null ? [] : [`signed   ${unknownSigner.text}`]),
    `policy   ${policy}`,
    ...(isLayered ? [`app      ${app}`] : []),
    '',
    ...walk,
    ...(decision.rule === 'otherwise'
      ? [
          `${'otherwise'.padEnd(width)}  ${column(decision.layer)}${paint(io, 'bold', 'yes')}  decides: no rule matches`,
        ]
      : []),
    '',
    `${paint(io, 'bold', decision.action.kind)}, by ${decision.rule === 'otherwise' ? 'otherwise' : `rule "${decision.rule}"`}${layerOf(decision.layer)}`,
    ...(wouldHave === null
      ? []
      : [
          `but for its dry_run, rule "${wouldHave.rule}"${layerOf(wouldHave.layer)} would have decided: ${wouldHave.action.kind}`,
        ]),
    ...effects.flatMap(({ text, lines }) => [
      '',
      text,
      ...lines.map((line) => visible(`  ${line}`).trimEnd()),
    ]),
  ]
}

/** What happens first to a signed request if the signer's key is unknown. */
interface UnknownSigner {
  readonly action: 'pass' | { readonly wait_ms: number }
  readonly text: string
}

function unknownSignerOf({ unknownSignerWaitMs: waitMs }: Policy): UnknownSigner {
  const unknown = 'not checked here; if the key of the signer is unknown, the proxy'
  if (waitMs === 0)
    return { action: 'pass', text: `${unknown} decides at once and treats the signature as unchecked` }
  return { action: { wait_ms: waitMs }, text: `${unknown} waits up to ${waitMs} ms for it` }
}

function verdictText({ kind, agent, software, confidence, nameConfidence, proof }: Verdict): string {
  const parts = [
    kind,
    ...(agent === null ? [] : [`agent ${agent.id} (${agent.category})`]),
    ...(agent === null || agent.purposes.length === 0 ? [] : [`purpose ${agent.purposes.join(' and ')}`]),
    ...(software === null || software.id === agent?.id ? [] : [`software ${software.id}`]),
    `confidence ${confidence}`,
    ...(software === null ? [] : [`name confidence ${nameConfidence}`]),
    proof === null ? 'not verified' : proofText(proof),
  ]
  return parts.join(', ')
}

function proofText({ method, agent }: Proof): string {
  return method === 'web-bot-auth' ? `verified by ${method}: ${agent}` : `verified by ${method}`
}

/**
 * A weight is how much the evidence favours the chosen class over the next one. A request file gives kinds
 * only.
 */
function evidenceLines({ evidence }: Verdict): readonly string[] {
  const width = Math.max(0, ...evidence.map(({ kind }) => kind.length))
  return evidence.map(({ kind, weight, detail }) => {
    if (detail === '') return visible(`         ${kind}`)
    const sign = weight > 0 ? '+' : ''
    return visible(`         ${kind.padEnd(width)}  ${`${sign}${weight.toFixed(2)}`.padStart(6)}  ${detail}`)
  })
}

const LAYER_WIDTH = 'first'.length
