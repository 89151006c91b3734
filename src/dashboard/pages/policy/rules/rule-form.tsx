import { Field } from '../../../parts/field.tsx'
import { ACTION_FORMS, CONDITION_FIELDS, type RuleField } from './fields.ts'
import { isObject, type WrittenRule } from './policy-rules.ts'
import { RuleInput } from './rule-input.tsx'
import { actionIn } from './sentence.ts'
import { memberOf, withMember } from './values.ts'

interface Props {
  readonly rule: WrittenRule
  /** The problem of a member, by its place below the rule: `/when/path`. */
  errorAt(place: string): string | null
  set(rule: WrittenRule): void
}

/** Everything of a rule, as fields. Each change is in the text at once. */
export function RuleForm({ rule, errorAt, set }: Props) {
  const member = (name: string, value: unknown) => set(withMember(rule, name, value))
  const input = (field: RuleField) => (
    <RuleInput
      field={field}
      value={rule[field.name]}
      error={errorAt(`/${field.name}`)}
      set={(value) => member(field.name, value)}
    />
  )
  return (
    <div class="rule-form">
      {input(NAME)}
      <Conditions
        when={rule['when']}
        errorAt={(place) => errorAt(`/when${place}`)}
        set={(when) => set({ ...rule, when })}
      />
      <ActionFields
        action={rule['action']}
        errorAt={(place) => errorAt(`/action${place}`)}
        set={(action) => set({ ...rule, action })}
      />
      {input(DRY_RUN)}
      {input(EXPIRES)}
    </div>
  )
}

interface PartProps {
  errorAt(place: string): string | null
  set(value: unknown): void
}

function Conditions({ when, errorAt, set }: PartProps & { readonly when: unknown }) {
  // A text is an expression.
  const conditions: WrittenRule =
    typeof when === 'string' ? { expression: when } : isObject(when) ? when : NOTHING
  const free = CONDITION_FIELDS.filter(({ name }) => !(name in conditions))
  const put = (next: WrittenRule) => {
    const isText = typeof when === 'string' && Object.keys(next).join() === 'expression'
    set(isText ? next['expression'] : next)
  }
  return (
    <fieldset>
      <legend>If all of these match</legend>
      {Object.entries(conditions).map(([name, value]) => {
        const field = CONDITION_FIELDS.find((each) => each.name === name) ?? unknownField(name)
        return (
          <div key={name} class="condition">
            <RuleInput
              field={field}
              value={value}
              error={errorAt(typeof when === 'string' ? '' : `/${name}`)}
              set={(next) => put({ ...conditions, [name]: next ?? (field.kind === 'choices' ? [] : '') })}
            />
            <button
              type="button"
              class="quiet"
              aria-label={`Remove the condition ${field.label}`}
              onClick={() => put(withMember(conditions, name, undefined))}
            >
              Remove
            </button>
          </div>
        )
      })}
      {Object.keys(conditions).length === 0 && <p class="hint">No conditions: every request matches.</p>}
      <Field label="Add a condition">
        {(tied) => (
          <select
            {...tied}
            value=""
            onChange={({ currentTarget }) => {
              const field = free.find(({ name }) => name === currentTarget.value)
              currentTarget.value = ''
              if (field !== undefined) put({ ...conditions, [field.name]: field.first })
            }}
          >
            <option value="">choose…</option>
            {free.map(({ name, label }) => (
              <option key={name} value={name}>
                {label}
              </option>
            ))}
          </select>
        )}
      </Field>
    </fieldset>
  )
}

/** An action with its settings. */
export function ActionFields({ action, errorAt, set }: PartProps & { readonly action: unknown }) {
  const [name, settings] = actionIn(action)
  const form = ACTION_FORMS[name]
  // Without settings, the name is enough.
  const put = (next: WrittenRule) =>
    set(Object.keys(next).length === 0 && form?.first === null ? name : { [name]: next })
  return (
    <fieldset>
      <legend>Action</legend>
      <Field label="Do" error={form === undefined ? errorAt('') : null}>
        {(tied) => (
          <select
            {...tied}
            value={form === undefined ? '' : name}
            onChange={({ currentTarget: { value } }) => {
              const first = ACTION_FORMS[value]?.first
              if (first !== undefined) set(first === null ? value : { [value]: first })
            }}
          >
            {form === undefined && <option value="">as in the text</option>}
            {Object.entries(ACTION_FORMS).map(([each, { label }]) => (
              <option key={each} value={each}>
                {label}
              </option>
            ))}
          </select>
        )}
      </Field>
      {form !== undefined && form.fields.length > 0 && (
        <div class="fields">
          {form.fields.map((field) => (
            <RuleInput
              key={`${name} ${field.name}`}
              field={field}
              value={memberOf(settings, field.name)}
              error={errorAt(`/${name}/${field.name.replace('.', '/')}`)}
              set={(value) => put(withMember(settings, field.name, value))}
            />
          ))}
        </div>
      )}
    </fieldset>
  )
}

function unknownField(name: string): RuleField {
  return { name, label: name, kind: 'json' }
}

const NOTHING: WrittenRule = {}
const NAME: RuleField = {
  ...{ name: 'name', label: 'Name', kind: 'text' },
  hint: '1 to 64 letters, digits, blanks and . _ - : /',
}
const DRY_RUN: RuleField = { name: 'dry_run', label: 'On trial: counted, without effect', kind: 'check' }
const EXPIRES: RuleField = {
  ...{ name: 'expires', label: 'Expires', kind: 'text' },
  hint: 'Optional. Like 2027-01-31T12:00:00Z.',
}
