import { short, percent } from '../../parts/format.ts'
import { Plot } from '../../parts/plot.tsx'
import { ProblemNote } from '../../parts/states.tsx'
import { VERDICTS } from './names.ts'
import { type Seconds, sumOf } from '../../../manage/intake/traffic.ts'
import { type HeardTraffic, useTraffic } from './use-traffic.ts'

/** Traffic of the last minutes, second by second. */
export function Now() {
  const { seconds, isOpen, problem } = useTraffic()
  return (
    <section class="card" aria-labelledby="now">
      <div class="page-head">
        <h2 id="now">The last five minutes</h2>
        <Hearing isOpen={isOpen} problem={problem} />
      </div>
      {problem !== null && <ProblemNote problem={problem} />}
      <Figures seconds={seconds} />
      <Plot
        title="Requests per second"
        at={seconds.at}
        isStacked
        lines={VERDICTS.map(({ verdict, label, colour }) => ({
          ...{ label, colour },
          values: seconds.traffic.map((second) => second?.by_verdict[verdict] ?? 0),
        }))}
      />
    </section>
  )
}

function Figures({ seconds }: { readonly seconds: Seconds }) {
  const { requests, by_verdict, by_action } = sumOf(seconds, MINUTE)
  const agents = by_verdict['agent'] ?? 0
  const figures = [
    { name: 'Requests per minute', value: short(requests) },
    { name: 'From agents', value: short(agents), share: requests === 0 ? null : agents / requests },
    { name: 'From people', value: short(by_verdict['human'] ?? 0) },
    { name: 'Tagged', value: short(by_action['tag'] ?? 0) },
    { name: 'Blocked', value: short(by_action['block'] ?? 0) },
  ]
  return (
    <dl class="figures">
      {figures.map(({ name, value, share = null }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            {value} {share !== null && <small>{percent(share)}</small>}
          </dd>
        </div>
      ))}
    </dl>
  )
}

function Hearing({ isOpen, problem }: Omit<HeardTraffic, 'seconds'>) {
  const text = isOpen ? 'Listening' : problem === null ? 'Connecting…' : 'Not connected'
  return (
    <p role="status" class="soft">
      <span class={`badge ${isOpen ? 'good' : problem === null ? 'plain' : 'bad'}`}>{text}</span>
    </p>
  )
}

const MINUTE = 60
