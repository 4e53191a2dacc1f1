// The mathematics of eigenlib once more, for pages in which no Python runs: the explorers of notebooks and report.
//
// One classic script without dependencies; everything is in `kernel`. Names, order of states and actions, tie rules, canonical
// basis and signs are eigenlib's, and tests/eigenlib/widgets/test_kernel.py compares the two on random mazes. Walks, diffusion time
// and Q-learning do not slip here; eigenvectors of maps with one-way doors, where T is not symmetric, are the general ones.
//
//   world    = parse(text)                 n states; next[4s + a] the state that action a (up, right, down, left) leads to
//   vectors  = arrays of n numbers         matrices = arrays of n such rows        random = () => a number in [0, 1)
//   option   = a policy, n actions, −1 where the option ends; it may start wherever it does not end

const kernel = (() => {
  const MOVES = [[-1, 0], [0, 1], [1, 0], [0, -1]], ARROWS = "^>v<";
  const NAMES = "ABCDEFGHIJKLMNOPQRSTUVWYZ", TIE = 1e-6, ROUNDING = 1e-12, SAME = 1e-8, ROUND = 1e-3, ZERO = 1e-9, EPS = 2 ** -52;

  const isWall = (mark) => mark === "X" || mark === "#";
  const range = (n) => Array.from({ length: n }, (_, i) => i);
  // The loops that take all the time, small, so that a browser compiles them early: Σ xᵢyᵢ, and x ← x + share y, from i to j.
  const dot = (x, y, from = 0, to = x.length) => { let sum = 0; for (let i = from; i < to; i++) sum += x[i] * y[i]; return sum; };
  const add = (x, share, y, from = 0, to = x.length) => { for (let i = from; i < to; i++) x[i] += share * y[i]; };
  const sum = (x, from = 0, to = x.length) => { let total = 0; for (let i = from; i < to; i++) total += x[i]; return total; };
  const largest = (x) => { let top = 0; for (const entry of x) top = Math.max(top, Math.abs(entry)); return top; };
  const zeros = (n, m = n) => range(n).map(() => new Float64Array(m));

  // --- worlds (gridworld.py) --------------------------------------------------------------------------------------------

  // A map as a world, or an Error whose message says what is wrong, where, and what to do.
  function parse(text) {
    const rows = text.split("\n").map((line) => line.trim()).filter((line) => line), width = rows[0]?.length ?? 0;
    if (!rows.some((row) => [...row].some((mark) => !isWall(mark)))) throw new Error("The map needs at least one free cell '.'.");
    const at = rows.map(() => new Int32Array(width).fill(-1)), cells = [], marks = [], landmarks = {};
    rows.forEach((row, r) => {
      if (row.length !== width) throw new Error(`Line ${r + 1} of the map has ${row.length} characters but line 1 has ${width}: make all lines equally long.`);
      [...row].forEach((mark, c) => {
        if (isWall(mark)) return;
        if (!`.${ARROWS}${NAMES}`.includes(mark)) throw new Error(`Unknown character '${mark}' at line ${r + 1}, column ${c + 1}: use X, '.', ^ > v < or a capital letter.`);
        if (landmarks[mark] !== undefined) throw new Error(`The name '${mark}' stands twice, again at line ${r + 1}, column ${c + 1}.`);
        if (NAMES.includes(mark)) landmarks[mark] = cells.length;
        at[r][c] = cells.length;
        cells.push([r, c]);
        marks.push(mark);
      });
    });
    const n = cells.length, next = new Int32Array(4 * n);
    cells.forEach(([r, c], s) => MOVES.forEach(([down, right], a) => {
      const there = at[r + down]?.[c + right] ?? -1, door = ARROWS.indexOf(marks[s]);
      if (door === a && there < 0) throw new Error(`The one-way door '${marks[s]}' at line ${r + 1}, column ${c + 1} opens into a wall: turn it or open the wall.`);
      next[4 * s + a] = there < 0 || (door >= 0 && door !== a) ? s : there;
    }));
    const doors = marks.some((mark) => ARROWS.includes(mark));
    return { text: rows.join("\n"), rows, height: rows.length, width, n, at, cells, next, landmarks, doors };
  }

  // Is the map in one piece, ways taken in either direction?
  function connected({ n, next }) {
    const beside = range(n).map(() => []), seen = new Uint8Array(n).fill(1, 0, 1), open = [0];
    next.forEach((t, i) => { beside[i >> 2].push(t); beside[t].push(i >> 2); });
    while (open.length) for (const t of beside[open.pop()]) if (!seen[t]) { seen[t] = 1; open.push(t); }
    return seen.every(Boolean);
  }

  // What an action can do, as pairs: the chance in each state, and where it leads from there by each action. A slip goes to
  // either side of the direction meant; then a wind may carry one tile up, with a chance that grows from 0 in the first column
  // to `wind` in the last.
  function outcomes({ n, next, cells, width }, slip = 0, wind = 0) {
    const turned = (by) => next.map((_, i) => next[(i & ~3) | ((i + by) & 3)]);
    const ways = slip ? [[1 - slip, next], [slip / 2, turned(3)], [slip / 2, turned(1)]] : [[1, next]];
    const blown = Float64Array.from(cells, ([, c]) => (width > 1 ? (wind * c) / (width - 1) : 0));
    if (!wind) return ways.map(([chance, to]) => [new Float64Array(n).fill(chance), to]);
    return ways.flatMap(([chance, to]) => [[blown.map((share) => chance * (1 - share)), to], [blown.map((share) => chance * share), to.map((t) => next[4 * t])]]);
  }

  // T[s][s′] of the uniform random policy, which slips do not change; W[s][s′] with self-loops is 4T, without them 0 or 1 between
  // neighbours.
  function transitions(world, wind = 0) {
    const T = zeros(world.n);
    for (const [chance, to] of outcomes(world, 0, wind)) to.forEach((t, i) => { T[i >> 2][t] += chance[i >> 2] / 4; });
    return T;
  }
  const adjacency = (world, loops = false) => transitions(world).map((row, s) => row.map((entry, t) => (s === t && !loops ? 0 : 4 * entry)));

  // 𝓛 = D^-½ (D − W) D^-½ (§2.2).
  function laplacian(W) {
    const scale = W.map((row) => sum(row) ** -0.5);
    return W.map((row, s) => row.map((entry, t) => (s === t ? 1 : 0) - scale[s] * entry * scale[t]));
  }

  // The random numbers of eigenlib for this seed (0 to 2³² − 1): a run here is the run there. numpy's SeedSequence makes 64 bits
  // of the seed, from which splitmix64 (Steele, Lea & Flood, 2014) goes on; of each draw its upper 32 bits are used.
  function generator(seed) {
    let hash = 0x43b0d7e5;
    const shifted = (x) => (x ^ (x >>> 16)) >>> 0;
    const hashed = (x) => { const y = x ^ hash; hash = Math.imul(hash, 0x931e8875); return shifted(Math.imul(y, hash)); };
    const pool = [seed, 0, 0, 0].map(hashed);
    for (let i = 0; i < 4; i++) for (let j = 0; j < 4; j++) if (i !== j) {
      const x = hashed(pool[i]);
      pool[j] = shifted(Math.imul(0xca01f9dd, pool[j]) - Math.imul(0x4973f715, x));
    }
    hash = 0x8b51f9dd;
    let [low, high] = pool.map((x) => { const y = x ^ hash; hash = Math.imul(hash, 0x58f38ded); return shifted(Math.imul(y, hash)); });
    let a, b; // the upper and the lower half of 64 bits
    const times = (c, d) => { // (a, b) × (c, d), of which 64 bits stay
      const b0 = b & 0xffff, b1 = b >>> 16, d0 = d & 0xffff, d1 = d >>> 16, middle = b1 * d0 + ((b0 * d0) >>> 16), other = b0 * d1 + (middle & 0xffff);
      a = (b1 * d1 + Math.floor(middle / 65536) + Math.floor(other / 65536) + Math.imul(a, d) + Math.imul(b, c)) >>> 0;
      b = Math.imul(b, d) >>> 0;
    };
    const fold = (n) => { b = (b ^ ((b >>> n) | (a << (32 - n)))) >>> 0; a = (a ^ (a >>> n)) >>> 0; };
    return () => {
      low += 0x7f4a7c15;
      high = (high + 0x9e3779b9 + (low > 0xffffffff ? 1 : 0)) >>> 0;
      low >>>= 0;
      [a, b] = [high, low];
      fold(30);
      times(0xbf58476d, 0x1ce4e5b9);
      fold(27);
      times(0x94d049bb, 0x133111eb);
      fold(31);
      return a / 2 ** 32;
    };
  }

  function walk(world, start, steps, random) {
    const path = [start];
    for (let t = 0; t < steps; t++) path.push(world.next[4 * path[t] + Math.floor(4 * random())]);
    return path;
  }

  // --- the successor representation (representation.py) -------------------------------------------------------------------

  // Solver of (diagonal I − weight T) x = y, or of the transposed system. States lie row by row, so the matrix is a band as
  // wide as the map, and it is diagonally dominant: elimination needs no pivoting. `solve.pivots` tell its inertia.
  function banded({ n, next }, diagonal, weight, transposed = false) {
    const b = next.reduce((most, t, i) => Math.max(most, Math.abs(t - (i >> 2))), 0), low = (i) => Math.max(0, i - b), high = (i) => Math.min(n, i + b + 1);
    const M = zeros(n);
    for (let s = 0; s < n; s++) M[s][s] = diagonal;
    next.forEach((t, i) => { if (transposed) M[t][i >> 2] -= weight / 4; else M[i >> 2][t] -= weight / 4; });
    for (let k = 0; k < n; k++) for (let i = k + 1; i < high(k); i++) if (M[i][k] !== 0) {
      M[i][k] /= M[k][k];
      add(M[i], -M[i][k], M[k], k + 1, high(k));
    }
    const pivots = M.map((row, i) => row[i]);
    const solve = (y) => {
      const x = y.slice();
      for (let i = 0; i < n; i++) x[i] -= dot(M[i], x, low(i), i);
      for (let i = n - 1; i >= 0; i--) x[i] = (x[i] - dot(M[i], x, i + 1, high(i))) / pivots[i];
      return x;
    };
    return Object.assign(solve, { pivots });
  }

  const unit = (n, s) => { const x = new Float64Array(n); x[s] = 1; return x; };

  // Rows of Ψ = (I − γT)⁻¹, exact: `const row = successors(world, gamma); row(s)`.
  function successors(world, gamma) {
    const solve = banded(world, 1, gamma, true);
    return (s) => solve(unit(world.n, s));
  }

  // Some more episodes of Alg. 2, in place: Ψ̂[s] ← Ψ̂[s] + η (1{s} + γ Ψ̂[s′] − Ψ̂[s]). start: a state, −1 for a random one each.
  function learnSuccessors({ n, next }, psi, episodes, { steps = 100, stepSize = 0.1, gamma = 0.9, start = -1, random }) {
    for (let episode = 0; episode < episodes; episode++) {
      let s = start < 0 ? Math.floor(n * random()) : start;
      for (let t = 0; t < steps; t++) {
        const ahead = next[4 * s + Math.floor(4 * random())];
        blend(psi[s], 1 - stepSize, psi[ahead], stepSize * gamma);
        psi[s][s] += stepSize;
        s = ahead;
      }
    }
    return psi;
  }

  const blend = (x, keep, y, pull) => { for (let j = 0; j < x.length; j++) x[j] = keep * x[j] + pull * y[j]; };

  // ‖Ψ̂ − Ψ‖ / ‖Ψ‖ (Frobenius).
  function relativeError(estimate, exact) {
    let off = 0, all = 0;
    exact.forEach((row, s) => row.forEach((entry, t) => { off += (estimate[s][t] - entry) ** 2; all += entry ** 2; }));
    return Math.sqrt(off / all);
  }

  // --- eigenvectors (eigenpurposes.py) ------------------------------------------------------------------------------------

  // Gram–Schmidt, twice: once leaves what rounding put back.
  function orthonormal(vectors) {
    const basis = [];
    for (const vector of vectors) {
      const x = vector.map((entry) => entry / (largest(vector) || 1));
      for (const y of [...basis, ...basis]) add(x, -dot(x, y), y);
      const size = Math.sqrt(dot(x, x)) || 1;
      basis.push(x.map((entry) => entry / size));
    }
    return basis;
  }

  // All eigenpairs of a symmetric matrix, in no order: Householder to tridiagonal form, then implicit QL.
  function symmetricEigenpairs(matrix) {
    const n = matrix.length, A = matrix.map((row) => row.slice()), mirrors = [], w = new Float64Array(n);
    for (let k = 0; k < n - 2; k++) {
      const v = new Float64Array(n);
      for (let i = k + 1; i < n; i++) v[i] = A[i][k];
      const norm = Math.sqrt(dot(v, v));
      mirrors.push(v);
      if (norm < 1e-300) { v.fill(0); continue; }
      v[k + 1] += v[k + 1] < 0 ? -norm : norm;
      const size = Math.sqrt(dot(v, v));
      for (let i = k + 1; i < n; i++) v[i] /= size;
      for (let i = k; i < n; i++) w[i] = dot(A[i], v, k + 1);
      add(w, -dot(v, w, k), v, k);
      for (let i = k; i < n; i++) { add(A[i], -2 * v[i], w, k); add(A[i], -2 * w[i], v, k); }
    }
    const d = A.map((row, i) => row[i]), e = A.map((_, i) => (i + 1 < n ? A[i + 1][i] : 0));
    const Z = range(n).map((i) => unit(n, i)); // row i will hold vector i
    for (let l = 0; l < n; l++) {
      for (let turn = 0; turn < 60; turn++) {
        let m = l;
        while (m < n - 1 && Math.abs(e[m]) > 1e-16 * (Math.abs(d[m]) + Math.abs(d[m + 1]))) m++;
        if (m === l) break;
        sweep(d, e, Z, l, m);
      }
    }
    for (const x of Z) for (let k = mirrors.length - 1; k >= 0; k--) add(x, -2 * dot(mirrors[k], x, k + 1), mirrors[k], k + 1);
    return { values: d, vectors: Z };
  }

  // One implicit QL sweep over rows l to m of a tridiagonal matrix: diagonal d, beside it e; the vectors' rows turn along.
  function sweep(d, e, Z, l, m) {
    let g = (d[l + 1] - d[l]) / (2 * e[l]), r = Math.hypot(g, 1), s = 1, c = 1, p = 0;
    g = d[m] - d[l] + e[l] / (g + (g < 0 ? -r : r));
    for (let i = m - 1; i >= l; i--) {
      const f = s * e[i], b = c * e[i];
      r = Math.sqrt(f * f + g * g);
      e[i + 1] = r;
      if (r === 0) { d[i + 1] -= p; e[m] = 0; return; }
      s = f / r;
      c = g / r;
      g = d[i + 1] - p;
      r = (d[i] - g) * s + 2 * c * b;
      p = s * r;
      d[i + 1] = g + p;
      g = c * r - b;
      rotate(Z[i], Z[i + 1], c, s);
    }
    d[l] -= p;
    e[l] = g;
    e[m] = 0;
  }
  function rotate(low, high, c, s) {
    for (let k = 0; k < low.length; k++) {
      const z = high[k];
      high[k] = s * low[k] + c * z;
      low[k] = c * low[k] - s * z;
    }
  }

  // The first `count` or some more eigenpairs of a symmetric T, or null where some may be missing. Lanczos with a block of four
  // vectors, so that it meets a value's eigenvectors up to four times, on ((1 + δ) I − T)⁻¹, which tears the smooth end apart;
  // every new vector is made orthogonal to all before it. The constant vector is known: it leads.
  function leadingEigenpairs(world, count) {
    const { n, next } = world, wanted = count + 4, solve = banded(world, 1 + 1e-4, 1), random = generator(1), basis = [], images = [];
    const noise = () => Float64Array.from({ length: n }, () => random() - 0.5);
    const join = (x) => {
      const before = dot(x, x);
      for (const y of [...basis, ...basis]) add(x, -dot(x, y), y); // twice: once leaves what rounding put back
      const size = dot(x, x);
      if (size < 1e-24 * before) { join(noise()); return; } // nothing new in this direction
      for (let i = 0; i < n; i++) x[i] /= Math.sqrt(size);
      basis.push(x);
      images.push(x.map((_, s) => (x[next[4 * s]] + x[next[4 * s + 1]] + x[next[4 * s + 2]] + x[next[4 * s + 3]]) / 4));
    };
    join(new Float64Array(n).fill(1));
    for (let k = 0; k < 4; k++) join(noise());
    let values, vectors;
    for (let used = 1, size = 5 * wanted; ; size += 16) {
      if (size > 14 * wanted || size > n) return null;
      while (basis.length < size) join(solve(basis[used++]));
      const small = symmetricEigenpairs(basis.map((x) => Float64Array.from(images, (y) => dot(x, y))));
      const order = range(size).sort((i, j) => small.values[j] - small.values[i]).slice(0, wanted);
      const turned = (from, k) => {
        const x = new Float64Array(n);
        from.forEach((y, j) => add(x, small.vectors[k][j], y));
        return x;
      };
      values = order.map((k) => small.values[k]);
      vectors = order.map((k) => turned(basis, k));
      const off = order.map((k, rank) => largest(turned(images, k).map((entry, i) => entry - values[rank] * vectors[rank][i])));
      if (largest(off) < 3e-15) break;
    }
    // Where an eigenspace ends well within the block, count by inertia how many eigenvalues there are up to there.
    const spaces = alike(values.slice(0, wanted), 1);
    let kept = 0;
    for (const space of spaces.slice(0, -1)) { kept += space.length; if (kept >= count) break; }
    if (kept < count) return null;
    const above = banded(world, (values[kept - 1] + values[kept]) / 2, 1).pivots.filter((pivot) => pivot < 0).length;
    return above === kept ? { values: values.slice(0, kept), vectors: vectors.slice(0, kept) } : null;
  }

  // Indices of values that are equal up to rounding, or up to 1e-8 of their distance from the first; the leading ones first.
  function alike(values, sign) {
    const order = range(values.length).sort((i, j) => sign * (values[j] - values[i]) || i - j), groups = [];
    const rounding = ROUNDING * largest(values), first = values[order[0]];
    order.forEach((k, rank) => {
      const slack = rounding + SAME * Math.abs(values[k] - first);
      if (rank && Math.abs(values[k] - values[order[rank - 1]]) <= slack) groups.at(-1).push(k); else groups.push([k]);
    });
    return groups;
  }

  // The orthonormal basis of a space that depends on the space alone: the state that stands out most first, ties by number.
  function canonicalBasis(basis) {
    const chosen = [];
    let rest = basis.map((x) => Float64Array.from(x));
    for (let k = 0; k < basis.length; k++) {
      const length = Float64Array.from(rest[0], (_, s) => rest.reduce((sum, x) => sum + x[s] * x[s], 0)), top = largest(length);
      const state = length.findIndex((entry) => entry >= (1 - TIE) * top), norm = Math.sqrt(length[state]);
      const shares = rest.map((x) => x[state] / norm);
      const vector = length.map((_, s) => rest.reduce((sum, x, m) => sum + shares[m] * x[s], 0));
      chosen.push(vector);
      rest = rest.map((x, m) => x.map((entry, s) => entry - shares[m] * vector[s]));
    }
    return chosen;
  }

  // The first entry of (nearly) largest size becomes positive.
  function fixSign(vector) {
    const top = largest(vector), leading = vector.find((entry) => Math.abs(entry) >= (1 - TIE) * top);
    return leading < 0 ? vector.map((entry) => -entry) : vector;
  }

  // Eigenpairs in order, [{ value, vector }], one basis for each eigenspace, signs fixed. first: "largest" or "smallest".
  function canonical({ values, vectors }, count, first = "largest") {
    return alike(values, first === "largest" ? 1 : -1).flatMap((group) => {
      const value = group.reduce((sum, k) => sum + values[k], 0) / group.length;
      const norm = Math.sqrt(dot(vectors[group[0]], vectors[group[0]]));
      const basis = group.length > 1 ? canonicalBasis(group.map((k) => vectors[k])) : [vectors[group[0]].map((entry) => entry / norm)];
      return basis.map((vector) => ({ value, vector: fixSign(vector) }));
    }).slice(0, count);
  }

  // Eigenvectors of a symmetric matrix (𝓛, say).
  const extractEigenpurposes = (matrix, count = matrix.length, first = "largest") => canonical(symmetricEigenpairs(matrix), count, first);

  // Eigenvectors of T, and so of Ψ, whose eigenvalues are 1 / (1 − γμ) (§3.2). Few of many come in a fraction of the time.
  function eigenpurposes(world, count = world.n) {
    if (world.doors) throw new Error("One-way doors make T unsymmetric: its eigenvectors need Python.");
    const few = world.n > 150 && 4 * count < world.n - 40 ? leadingEigenpairs(world, count) : null;
    return canonical(few ?? symmetricEigenpairs(transitions(world)), count);
  }

  // Eigenvalues of any real matrix, [re, im] each: Householder to Hessenberg form, then Francis' double-shift QR.
  function eigenvalues(matrix) {
    const n = matrix.length, H = matrix.map((row) => Float64Array.from(row)), found = [];
    const reflect = (v, at, left, right, low, high) => { // I − 2uuᵀ on rows at… from column left on, and on columns at…
      const size = Math.hypot(...v), u = v.slice();
      if (size === 0) return;
      u[0] += u[0] < 0 ? -size : size;
      const norm = Math.hypot(...u);
      for (let i = 0; i < u.length; i++) u[i] /= norm;
      for (let j = left; j <= right; j++) {
        let along = 0;
        for (let i = 0; i < u.length; i++) along += u[i] * H[at + i][j];
        for (let i = 0; i < u.length; i++) H[at + i][j] -= 2 * along * u[i];
      }
      for (let i = low; i <= high; i++) add(H[i].subarray(at, at + u.length), -2 * dot(u, H[i].subarray(at, at + u.length)), u);
    };
    for (let k = 0; k < n - 2; k++) {
      reflect(H.slice(k + 1).map((row) => row[k]), k + 1, k, n - 1, 0, n - 1);
      for (let i = k + 2; i < n; i++) H[i][k] = 0; // exactly, not nearly: rounding left there would keep zeros from being found
    }
    const tiny = EPS * largest(H.map(largest)); // of the whole, not of its neighbours: what was never visited is a block of zeros
    for (let hi = n - 1, turn = 0; hi >= 0; ) {
      let l = hi;
      while (l > 0 && Math.abs(H[l][l - 1]) > tiny) l--;
      if (l === hi) { found.push([H[hi][hi], 0]); hi--; turn = 0; continue; }
      const g = hi - 1;
      let x = H[hi][hi], y = H[g][g], w = H[g][hi] * H[hi][g];
      if (l === g) {
        const half = (y - x) / 2, square = half * half + w, root = Math.sqrt(Math.abs(square));
        if (square < 0) found.push([x + half, root], [x + half, -root]);
        else { const far = half + (half < 0 ? -root : root); found.push([x + far, 0], [far === 0 ? x : x - w / far, 0]); }
        hi -= 2;
        turn = 0;
        continue;
      }
      if (turn++ > 300) throw new Error("The eigenvalues of this matrix were not found.");
      if (turn % 10 === 0) { const s = Math.abs(H[hi][g]) + Math.abs(H[g][g - 1]); x = y = H[hi][hi] + 0.75 * s; w = -0.4375 * s * s; } // breaks circles
      // The first column of (H − λ₁)(H − λ₂), from differences: the eigenvalues of a block may be equal to the last digit.
      const z = H[l][l], r = x - z, s = y - z;
      let v = [(r * s - w) / H[l + 1][l] + H[l][l + 1], H[l + 1][l + 1] - z - r - s, H[l + 2][l + 1]];
      for (let k = l; k < hi; k++) {
        reflect(v, k, Math.max(l, k - 1), hi, l, Math.min(k + 3, hi));
        if (k > l) for (let i = k + 1; i <= Math.min(k + 2, hi); i++) H[i][k - 1] = 0;
        v = [1, 2, 3].filter((i) => k + i <= hi).map((i) => H[k + i][k]);
      }
    }
    return found;
  }

  // Solver of a dense system, by elimination with pivoting; a pivot of 0 becomes tiny, as inverse iteration wants it.
  function dense(matrix) {
    const n = matrix.length, M = matrix.map((row) => Float64Array.from(row)), order = range(n), tiny = EPS * (largest(M.map(largest)) || 1);
    for (let k = 0; k < n; k++) {
      let best = k;
      for (let i = k + 1; i < n; i++) if (Math.abs(M[i][k]) > Math.abs(M[best][k])) best = i;
      [M[k], M[best]] = [M[best], M[k]];
      [order[k], order[best]] = [order[best], order[k]];
      if (Math.abs(M[k][k]) < tiny) M[k][k] = tiny;
      for (let i = k + 1; i < n; i++) if (M[i][k] !== 0) { M[i][k] /= M[k][k]; add(M[i], -M[i][k], M[k], k + 1); }
    }
    return (y) => {
      const x = Float64Array.from(order, (i) => y[i]);
      for (let i = 0; i < n; i++) x[i] -= dot(M[i], x, 0, i);
      for (let i = n - 1; i >= 0; i--) x[i] = (x[i] - dot(M[i], x, i + 1)) / M[i][i];
      return x;
    };
  }

  function inverse(matrix) {
    const solve = dense(matrix), columns = range(matrix.length).map((s) => solve(unit(matrix.length, s)));
    return columns.map((_, s) => Float64Array.from(columns, (column) => column[s]));
  }

  // The first `count` right eigenvectors of a matrix that need not be symmetric (a learned Ψ̂, say), largest real part first; a
  // complex pair gives the axes of the ellipse that it runs through. The vectors come by inverse iteration.
  function generalEigenpurposes(matrix, count, values = eigenvalues(matrix)) {
    const n = matrix.length, random = generator(1), found = [], upper = values.filter(([, im]) => im >= 0);
    const byReal = alike(upper.map(([re]) => re), 1).flatMap((group) => {
      const sorted = group.sort((i, j) => upper[i][1] - upper[j][1]), groups = [];
      for (const k of sorted) { // the same real part, but another imaginary one: another space
        const last = groups.at(-1)?.at(-1);
        if (last !== undefined && upper[k][1] - upper[last][1] <= SAME * (1 + upper[k][1])) groups.at(-1).push(k); else groups.push([k]);
      }
      return groups;
    });
    for (const group of byReal) {
      if (found.length >= count) break;
      const re = sum(group.map((k) => upper[k][0])) / group.length, im = sum(group.map((k) => upper[k][1])) / group.length;
      const size = group.length * (im > 0 ? 2 : 1), shifted = matrix.map((row, s) => Float64Array.from(row, (entry, t) => entry - (s === t ? re : 0)));
      const solve = dense(im > 0 ? square(shifted, im * im) : shifted);
      let basis = range(size).map(() => Float64Array.from({ length: n }, () => random() - 0.5));
      for (let turn = 0; turn < 4; turn++) basis = orthonormal(basis.map(solve));
      const axes = size === 2 && im > 0 ? ellipse(matrix, basis, re, im) : null;
      for (const vector of axes ?? (size > 1 ? canonicalBasis(basis) : basis)) found.push({ value: re, im, vector: fixSign(vector) });
    }
    return found.slice(0, count);
  }
  // A complex pair v, v̄ of re ± im i whose plane has the basis u, w: the phase that makes vᵀv real and positive turns real and
  // imaginary part into the axes of an ellipse, the long one first. Null for circles, which have none.
  function ellipse(matrix, [u, w], re, im) {
    const image = matrix.map((row) => dot(row, u)), other = matrix.map((row) => dot(row, w));
    const a = dot(u, image), b = dot(u, other), p = u.map((entry, s) => b * entry + (re - a) * w[s]), q = w.map((entry) => im * entry);
    const long = dot(p, p) - dot(q, q), skew = 2 * dot(p, q), phase = Math.atan2(skew, long) / 2, cos = Math.cos(phase), sin = Math.sin(phase);
    if (Math.hypot(long, skew) <= ROUND * (dot(p, p) + dot(q, q))) return null;
    const axes = [p.map((entry, s) => entry * cos + q[s] * sin), q.map((entry, s) => entry * cos - p[s] * sin)];
    return axes.map((axis) => { const size = Math.sqrt(dot(axis, axis)); return axis.map((entry) => entry / size); });
  }

  // The first `count` eigenpairs of Ψ; where doors make it unsymmetric the general way.
  function successorPurposes(world, gamma, count) {
    if (world.doors) return generalEigenpurposes(range(world.n).map(successors(world, gamma)), count);
    return eigenpurposes(world, count).map(({ value, vector }) => ({ value: 1 / (1 - gamma * value), vector }));
  }

  // How far a vector lies in the eigenspace of rank k among `purposes`: 1 inside it, 0 at right angles.
  function alignment(vector, purposes, k) {
    let low = k, high = k, inside = 0;
    while (low > 0 && Math.abs(purposes[low - 1].value - purposes[low].value) <= SAME) low--;
    while (high + 1 < purposes.length && Math.abs(purposes[high + 1].value - purposes[high].value) <= SAME) high++;
    for (const one of orthonormal(purposes.slice(low, high + 1).map((pair) => pair.vector))) inside += dot(one, vector) ** 2;
    return Math.min(1, Math.sqrt(inside / dot(vector, vector)));
  }

  // A² + shift I.
  const square = (A, shift) => A.map((row, s) => {
    const result = new Float64Array(A.length);
    row.forEach((entry, k) => { if (entry) add(result, entry, A[k]); });
    result[s] += shift;
    return result;
  });

  // --- options (eigenoptions.py) ------------------------------------------------------------------------------------------

  // The option that climbs e best: value iteration from zero with `terminate` worth 0; ties go to the first action.
  function eigenoption(world, purpose, gamma = 0.9, ways = outcomes(world)) {
    const { n } = world, size = largest(purpose), zero = ZERO * size, q = new Float64Array(4 * n);
    let value = new Float64Array(n), better = new Float64Array(n);
    for (let moved = true; moved; ) {
      moved = false;
      for (let s = 0; s < n; s++) {
        let best = 0;
        for (let i = 4 * s; i < 4 * s + 4; i++) {
          q[i] = 0;
          for (const [chance, to] of ways) q[i] += chance[s] * (purpose[to[i]] - purpose[s] + gamma * value[to[i]]);
          if (q[i] > best) best = q[i];
        }
        better[s] = best;
        if (best - value[s] > 2 * EPS * size) moved = true;
      }
      [value, better] = [better, value];
    }
    return range(n).map((s) => {
      const all = q.subarray(4 * s, 4 * s + 4), best = Math.max(...all);
      return best > zero ? all.findIndex((each) => each >= best - ((1 - gamma) * zero) / 2) : -1;
    });
  }

  // The option that goes to one state by the shortest way; −1 also where no way leads there.
  function subgoalOption({ n, next }, goal) {
    const far = new Float64Array(n).fill(Infinity);
    far[goal] = 0;
    for (let moved = true; moved; ) {
      moved = false;
      for (let i = 0; i < 4 * n; i++) if (far[next[i]] + 1 < far[i >> 2]) { far[i >> 2] = far[next[i]] + 1; moved = true; }
    }
    return range(n).map((s) => (s === goal || far[s] === Infinity ? -1 : [0, 1, 2, 3].find((a) => far[next[4 * s + a]] === far[s] - 1)));
  }

  // Options of e₁, −e₁, e₂, … in order; directions without one (the constant) are passed over. `const options =
  // eigenoptions(world); options(8)`: what was found for fewer is not sought again.
  function eigenoptions(world, gamma = 0.9, purposes = null) {
    const found = [];
    let next = 0; // of e₀, −e₀, e₁, …
    return (count) => {
      if (!purposes || purposes.length < Math.min(world.n, count / 2 + 1)) purposes = eigenpurposes(world, Math.min(world.n, Math.ceil(count / 2) + 1));
      for (; found.length < count && next < 2 * purposes.length; next++) {
        const { vector } = purposes[next >> 1], policy = eigenoption(world, next & 1 ? vector.map((entry) => -entry) : vector, gamma);
        if (policy.some((action) => action >= 0)) found.push(policy);
      }
      return found.slice(0, count);
    };
  }

  function follow({ next }, policy, start) {
    const path = [start];
    while (policy[path.at(-1)] >= 0) path.push(next[4 * path.at(-1) + policy[path.at(-1)]]);
    return path;
  }

  // --- diffusion time (diffusion.py) --------------------------------------------------------------------------------------

  // Expected decisions from every state to the goal of the uniform walk over actions and options; an option that crosses the
  // goal stops there. States are eliminated one after the other as in diffusion.py: nothing is ever subtracted. Returns a
  // function of the goal, so that a page can compute some goals at a time.
  function hittingTimes(world, options = []) {
    const { n, next } = world;
    const ends = [...new Set(options.flatMap((policy) => range(n).filter((s) => policy[s] < 0 && next.some((t, i) => t === s && policy[i >> 2] === (i & 3)))))];
    const isEnd = new Uint8Array(n);
    for (const s of ends) isEnd[s] = 1;
    const order = [...ends, ...range(n).filter((s) => !isEnd[s])], row = new Int32Array(n), E = ends.length;
    order.forEach((s, i) => { row[s] = i; });
    let band = 0;
    next.forEach((t, i) => { if (!isEnd[t] && !isEnd[i >> 2]) band = Math.max(band, Math.abs(row[t] - row[i >> 2])); });
    // Every option's states so that those it comes to later stand first: where it stops is then known before it is asked for.
    const later = options.map((policy) => {
      const steps = range(n).map((s) => follow(world, policy, s).length);
      return range(n).sort((s, t) => steps[s] - steps[t]);
    });
    const N = zeros(n), leave = new Float64Array(n), cost = new Float64Array(n), rest = new Float64Array(n), h = new Float64Array(n);
    const stop = new Int32Array(n);
    return (goal) => {
      const lost = world.doors ? hopeless(world, goal) : null, end = row[goal];
      for (const ways of N) ways.fill(0);
      leave.fill(0);
      cost.fill(4);
      const way = (s, t) => { if (t === goal) leave[row[s]] += 1; else N[row[s]][row[t]] += 1; };
      next.forEach((t, i) => way(i >> 2, t));
      options.forEach((policy, k) => {
        for (const s of later[k]) {
          const ahead = policy[s] < 0 ? s : next[4 * s + policy[s]];
          stop[s] = ahead === s || ahead === goal ? ahead : stop[ahead];
          if (policy[s] >= 0) { way(s, stop[s]); cost[row[s]] += 1; }
        }
      });
      // The pivot of a hopeless state could be 0. It has no influence on the others, so any way out will do.
      if (lost) lost.forEach((is, s) => { if (is) leave[row[s]] += 1; });
      const dense = (p) => Math.min(E, p), low = (p) => Math.max(E, p - band);
      for (let p = n - 1; p >= 0; p--) {
        if (p === end) continue;
        rest[p] = leave[p] + sum(N[p], 0, dense(p)) + sum(N[p], low(p), p);
        const pass = (i) => {
          const share = N[i][p] / rest[p];
          if (share === 0) return;
          cost[i] += share * cost[p];
          leave[i] += share * leave[p];
          add(N[i], share, N[p], 0, dense(p));
          add(N[i], share, N[p], low(p), p);
        };
        for (let i = 0; i < dense(p); i++) pass(i);
        for (let i = low(p); i < p; i++) pass(i);
      }
      const times = new Float64Array(n);
      for (let p = 0; p < n; p++) {
        h[p] = p === end ? 0 : (cost[p] + dot(N[p], h, 0, dense(p)) + dot(N[p], h, low(p), p)) / rest[p];
        times[order[p]] = lost?.[order[p]] ? Infinity : h[p];
      }
      return times;
    };
  }

  // Whether the walk from s may come, before it reaches the goal, to where no way leads to the goal.
  function hopeless({ n, next }, goal) {
    const lost = new Array(n).fill(true);
    lost[goal] = false;
    for (let moved = true; moved; ) {
      moved = false;
      next.forEach((t, i) => { if (lost[i >> 2] && !lost[t]) { lost[i >> 2] = false; moved = true; } });
    }
    for (let moved = true; moved; ) {
      moved = false;
      next.forEach((t, i) => { if (i >> 2 !== goal && !lost[i >> 2] && lost[t]) { lost[i >> 2] = true; moved = true; } });
    }
    return lost;
  }

  // Mean and median over all ordered pairs of distinct states; times[g][s].
  function summary(times) {
    const all = Float64Array.from(times.flatMap((column, g) => [...column].filter((_, s) => s !== g))).sort(), half = all.length >> 1;
    const median = all.length % 2 ? all[half] : (all[half - 1] + all[half]) / 2;
    return { mean: all.reduce((sum, time) => sum + time, 0) / all.length, median };
  }
  function diffusionTime(world, options = []) {
    const time = hittingTimes(world, options);
    return summary(range(world.n).map(time));
  }

  // --- Q-learning (control.py) --------------------------------------------------------------------------------------------

  // Off-policy Q-learning over the four actions that explores with options too. `episode()` learns one more, in place;
  // `outcome()` is what the greedy policy earns, and its chance to arrive in time, exactly, ties broken uniformly.
  function qLearner({ n, next }, options, start, goal, { stepSize = 0.1, gamma = 0.9, steps = 100, random }) {
    const q = new Float64Array(4 * n), menu = range(n).map((s) => options.filter((policy) => policy[s] >= 0));
    const best = (s) => Math.max(q[4 * s], q[4 * s + 1], q[4 * s + 2], q[4 * s + 3]);
    function episode() {
      const path = [start];
      let s = start, option = null;
      for (let t = 0; t < steps && s !== goal; t++) {
        let action = option ? option[s] : -1;
        if (action < 0) {
          const choice = Math.floor((4 + menu[s].length) * random());
          option = choice < 4 ? null : menu[s][choice - 4];
          action = option ? option[s] : choice;
        }
        const i = 4 * s + action, ahead = next[i];
        q[i] += stepSize * ((ahead === goal ? 1 : gamma * best(ahead)) - q[i]);
        s = ahead;
        path.push(s);
      }
      return path;
    }
    function outcome() {
      const ways = range(n).map((s) => { const top = best(s); return [0, 1, 2, 3].filter((a) => q[4 * s + a] === top).map((a) => next[4 * s + a]); });
      let first = unit(n, goal), longer = new Float64Array(n), earned = 0, reached = 0;
      for (let t = 0; t < steps; t++) { // first[s]: the chance to enter the goal for the first time after exactly t steps
        for (let s = 0; s < n; s++) {
          let sum = 0;
          for (const ahead of ways[s]) sum += first[ahead];
          longer[s] = s === goal ? 0 : sum / ways[s].length;
        }
        earned += gamma ** t * longer[start];
        reached += longer[start];
        [first, longer] = [longer, first];
      }
      return { earned, reached };
    }
    return { q, episode, outcome };
  }

  return {
    MOVES, parse, connected, outcomes, transitions, inverse, adjacency, laplacian, generator, walk, successors, learnSuccessors, relativeError,
    symmetricEigenpairs, leadingEigenpairs, canonicalBasis, fixSign, extractEigenpurposes, eigenpurposes, eigenvalues, generalEigenpurposes, successorPurposes, alignment, eigenoption,
    subgoalOption, eigenoptions, follow, hittingTimes, summary, diffusionTime, qLearner, range, largest, dot, orthonormal, isWall,
  };
})();
