//! Which members of a job are used, by their names, and what each of them is.

use super::super::heading::Column;

/// What a member is.
pub(super) enum Shape {
    /// An object, of which these members are used.
    Object(Members),
    /// What a column has.
    Column(Column),
    /// The number of the array that the job is a task of.
    ArrayJob,
    /// Which task of it.
    ArrayTask,
    /// What became of the job.
    State,
    /// A list of what the job was given, or asked for.
    Resources(Share),
    /// What kind of resource it is.
    ResourceKind,
    /// Which of that kind it is, such as `gpu`.
    ResourceName,
    /// How much of it.
    ResourceCount,
    /// The list of the steps of a job.
    Steps,
    /// Which step it is.
    StepId,
    /// The energy of a step, in joules.
    StepEnergy,
}

/// Whose resources a list has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Share {
    Allocated,
    Requested,
}

/// The members of an object that are used.
pub(super) type Members = &'static [(&'static str, Shape)];

/// A job.
pub(super) const JOB: Members = &[
    ("account", Shape::Column(Column::Account)),
    ("allocation_nodes", Shape::Column(Column::AllocNodes)),
    (
        "array",
        Shape::Object(&[
            ("job_id", Shape::ArrayJob),
            (
                "limits",
                Shape::Object(&[(
                    "max",
                    Shape::Object(&[(
                        "running",
                        Shape::Object(&[("tasks", Shape::Column(Column::ArrayLimit))]),
                    )]),
                )]),
            ),
            ("task_id", Shape::ArrayTask),
        ]),
    ),
    ("group", Shape::Column(Column::Group)),
    ("job_id", Shape::Column(Column::JobIdRaw)),
    ("name", Shape::Column(Column::JobName)),
    ("nodes", Shape::Column(Column::NodeList)),
    ("partition", Shape::Column(Column::Partition)),
    ("qos", Shape::Column(Column::Qos)),
    ("required", Shape::Object(&[("CPUs", Shape::Column(Column::ReqCpus))])),
    ("reservation", Shape::Object(&[("name", Shape::Column(Column::Reservation))])),
    ("state", Shape::State),
    ("steps", Shape::Steps),
    ("submit_line", Shape::Column(Column::SubmitLine)),
    (
        "time",
        Shape::Object(&[
            ("elapsed", Shape::Column(Column::ElapsedRaw)),
            ("eligible", Shape::Column(Column::Eligible)),
            ("end", Shape::Column(Column::End)),
            ("limit", Shape::Column(Column::TimelimitRaw)),
            ("start", Shape::Column(Column::Start)),
            ("submission", Shape::Column(Column::Submit)),
        ]),
    ),
    (
        "tres",
        Shape::Object(&[
            ("allocated", Shape::Resources(Share::Allocated)),
            ("requested", Shape::Resources(Share::Requested)),
        ]),
    ),
    ("user", Shape::Column(Column::User)),
];

/// A resource of a job.
pub(super) const RESOURCE: Members = &[
    ("type", Shape::ResourceKind),
    ("name", Shape::ResourceName),
    ("count", Shape::ResourceCount),
];

/// A step of a job.
pub(super) const STEP: Members = &[
    ("step", Shape::Object(&[("id", Shape::StepId)])),
    ("statistics", Shape::Object(&[("energy", Shape::Object(&[("consumed", Shape::StepEnergy)]))])),
];
