/**
 * The only script of the sign-in pages: the browser creates or uses a passkey, and the form sends the result.
 */
export const PASSKEY_SCRIPT = `'use strict'
const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, '+').replace(/_/g, '/')), (char) => char.charCodeAt(0))
const text = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\\+/g, '-').replace(/\\//g, '_').replace(/=+$/, '')
const named = (list) => (list ?? []).map((each) => ({ ...each, id: bytes(each.id) }))

async function made(options) {
  const user = { ...options.user, id: bytes(options.user.id) }
  const publicKey = { ...options, user, challenge: bytes(options.challenge), excludeCredentials: named(options.excludeCredentials) }
  const { rawId, response } = await navigator.credentials.create({ publicKey })
  return [rawId, { clientDataJSON: text(response.clientDataJSON), attestationObject: text(response.attestationObject) }]
}

async function used(options) {
  const publicKey = { ...options, challenge: bytes(options.challenge) }
  const { rawId, response } = await navigator.credentials.get({ publicKey })
  const { clientDataJSON, authenticatorData, signature, userHandle } = response
  return [rawId, {
    clientDataJSON: text(clientDataJSON), authenticatorData: text(authenticatorData), signature: text(signature),
    userHandle: userHandle === null ? '' : text(userHandle),
  }]
}

for (const form of document.querySelectorAll('form[data-passkey]')) {
  if (window.PublicKeyCredential === undefined) continue
  form.hidden = false
  const field = form.querySelector('[name=response]')
  const said = form.querySelector('[role=status]')
  form.addEventListener('submit', async (event) => {
    if (field.value !== '') return
    event.preventDefault()
    const { submitter } = event
    said.textContent = ''
    try {
      const [rawId, response] = await (form.dataset.passkey === 'make' ? made : used)(JSON.parse(form.dataset.options))
      field.value = JSON.stringify({ id: text(rawId), rawId: text(rawId), type: 'public-key', response })
      form.requestSubmit(submitter)
    } catch (error) {
      said.textContent = error.name === 'InvalidStateError'
        ? 'This device already has a passkey of yours.'
        : 'The passkey failed or was not allowed. Reload the page and try again.'
    }
  })
}
`

export const PASSKEY_SCRIPT_PATH = '/docs/passkey.js'
