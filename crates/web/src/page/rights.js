// What the reader may change, by their token. Who has none is asked for one when it is needed; who has one that is not
// enough is not offered what would be refused.

const RANKS = { viewer: 0, user: 1, operator: 2 };

/** Whether the reader's token, if there is one, is enough for a role. */
const mayAs = (role) => who.token === null || RANKS[who.role] >= RANKS[role];

/** Whether the reader may change a job of this user, as far as the page knows. */
const mayChangeJobsOf = (user) => mayAs("user") && (who.role !== "user" || who.user === user);

/** The owner of a job as people know them. */
const ownerWords = ({ user, user_name: name }) => name ?? `user ${user}`;

/** Whether the owner of a job is worth a word: not beside one's own jobs. */
const isOwnerTold = ({ user }) => !(who.role === "user" && who.user === user);

/** Offers what the reader may do, and says why the rest is not offered. */
function showRights() {
  for (const place of document.querySelectorAll("[data-role]")) place.disabled = !mayAs(place.dataset.role);
  for (const note of document.querySelectorAll("[data-without]")) note.hidden = mayAs(note.dataset.without);
  const isAccountShown = who.role !== "viewer", accounts = byId("usage-by").querySelector("[value=account]");
  accounts.hidden = accounts.disabled = !isAccountShown;
  if (!isAccountShown) byId("usage-by").value = "user";
}
