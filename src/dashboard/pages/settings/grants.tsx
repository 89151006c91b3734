import { ask } from '../../api/ask.ts'
import type { Grant, GrantState } from '../../api/operations.ts'
import { useDoing } from '../../api/use-doing.ts'
import { ChoiceFilter, Filters, useFilters } from '../../parts/filters.tsx'
import { Facts } from '../../parts/facts.tsx'
import { Choices } from '../../parts/choices.tsx'
import { useAsked } from '../../api/use-asked.ts'
import { Answered, Empty, ProblemNote } from '../../parts/states.tsx'
import { Time } from '../../parts/time.tsx'

/** GNAP grant requests made with keys that no admin has approved. */
export function Grants() {
  const { values, set } = useFilters(['state'])
  const state = STATES.find((each) => each === values.state)
  const used = useAsked('listGrants', { query: state === undefined ? {} : { state } }, { everyMs: 3_000 })
  return (
    <section aria-labelledby="list">
      <h2 id="list">Grants</h2>
      <p class="about">
        Access requests of GNAP clients with unknown keys. A request expires after one hour without a
        decision.
      </p>
      <Filters>
        <ChoiceFilter
          label="State"
          value={values.state}
          all="waiting"
          choices={STATES}
          set={(value) => set('state', value)}
        />
      </Filters>
      <Answered used={used}>
        {({ grants }) =>
          grants.length === 0 ? (
            <Empty title="No matching grants">
              <p>
                When a client with an unknown key requests access at /gnap/grant, it appears here at once.
              </p>
            </Empty>
          ) : (
            grants.map((grant) => <OneGrant key={grant.id} grant={grant} again={used.again} />)
          )
        }
      </Answered>
    </section>
  )
}

function OneGrant({ grant, again }: { readonly grant: Grant; readonly again: () => void }) {
  const doing = useDoing()
  const decide = (decision: 'approve' | 'deny', form: HTMLFormElement) => {
    const scopes = new FormData(form).getAll('scopes') as Grant['scopes']
    void doing.run(async () => {
      const body = decision === 'approve' ? { decision, scopes } : { decision }
      await ask('decideGrant', { path: { id: grant.id }, body })
      again()
    })
  }
  const { name, uri, thumbprint, state, scopes, bearer, finish_uri, created_at, expires_at } = grant
  return (
    <form
      class="card"
      aria-label={`Grant for ${name ?? thumbprint}`}
      onSubmit={(event) => event.preventDefault()}
    >
      <h3>{name ?? 'Unnamed client'}</h3>
      <p class="hint">The client claims this name and address. They are not verified.</p>
      <Facts
        of={[
          ['Address', uri],
          ['Key', <code key="key">{thumbprint}</code>],
          ['Requested', <Time key="asked" at={created_at} />],
          ['Expires', <Time key="over" at={expires_at} />],
          ['Token', bearer ? 'bearer token, not bound to a key' : 'bound to its key'],
          ['Redirects to', finish_uri],
          ['State', state === 'waiting' ? null : `${state} by ${grant.decided_by ?? 'an unknown user'}`],
        ]}
      />
      {state === 'waiting' && (
        <>
          {doing.problem !== null && <ProblemNote problem={doing.problem} />}
          <Choices
            legend="Requested scopes"
            name="scopes"
            values={scopes.map((value) => ({ value }))}
            chosen={scopes}
            error={doing.errorAt('/scopes')}
          />
          <p class="actions">
            <button
              type="submit"
              class="main"
              onClick={({ currentTarget }) => decide('approve', currentTarget.form!)}
            >
              Approve
            </button>
            <button type="button" onClick={({ currentTarget }) => decide('deny', currentTarget.form!)}>
              Deny
            </button>
          </p>
        </>
      )}
    </form>
  )
}

const STATES = ['approved', 'denied', 'finished'] as const satisfies readonly GrantState[]
